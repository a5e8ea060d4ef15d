// A rank's send or receive buffer, with guard zones on both sides of the part in use. One on a GPU has an image on the
// host, which is written and looked at, and copied there and back.
#pragma once
#include <cstddef>

#include "tutti/tutti.h"

namespace tutti::perf {

// How the memory is made (-R).
enum class MemoryKind { kPlain = 0, kRegistered = 1, kShareable = 2 };

class Buffer {
 public:
  static constexpr size_t kGuard = 4096;

  // Zeroed and touched. It may later start up to `slack` bytes after its page-aligned start. `comm` is needed to
  // register. `device`: its GPU; -1: host memory. Throws Failure.
  Buffer(size_t bytes, size_t slack, MemoryKind kind, tuttiComm_t comm, int rank, int device);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  void startAt(size_t offset) { start_ = kGuard + offset; }
  // What calls are given; what the host writes and reads.
  std::byte* data() const { return static_cast<std::byte*>(onDevice_ != nullptr ? onDevice_ : memory_) + start_; }
  std::byte* image() const { return static_cast<std::byte*>(memory_) + start_; }
  // Brings the first `extent` bytes and the guard zones from the image to the GPU, and back. No operation may be under
  // way. On host memory there is nothing to do. Throw Failure.
  void publish(size_t extent) const;
  void fetch(size_t extent) const;

  // Writes the guard zones right before and right after the first `extent` bytes.
  void plantCanaries(size_t extent) const;
  // The number of guard bytes that have changed.
  size_t brokenCanaries(size_t extent) const;

 private:
  void* memory_ = nullptr;    // of the host
  void* onDevice_ = nullptr;  // of the GPU, as large
  void* registration_ = nullptr;
  size_t start_ = 0;
  int device_;
  MemoryKind kind_;
  tuttiComm_t comm_;
};

}  // namespace tutti::perf

// A rank's send or receive buffer, with guard zones on both sides of the part in use.
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
  // register. Throws Failure.
  Buffer(size_t bytes, size_t slack, MemoryKind kind, tuttiComm_t comm, int rank);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  void startAt(size_t offset) { start_ = static_cast<std::byte*>(memory_) + kGuard + offset; }
  std::byte* data() const { return start_; }

  // Writes the guard zones right before and right after the first `extent` bytes.
  void plantCanaries(size_t extent) const;
  // The number of guard bytes that have changed.
  size_t brokenCanaries(size_t extent) const;

 private:
  void* memory_ = nullptr;
  void* registration_ = nullptr;
  std::byte* start_ = nullptr;
  MemoryKind kind_;
  tuttiComm_t comm_;
};

}  // namespace tutti::perf

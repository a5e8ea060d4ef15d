// The memory that CUDA knows of, and where each piece of it is.
#pragma once
#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>

namespace tutti::emulation {

enum class MemoryKind { kDevice, kDeviceAsync, kVirtual, kImported, kHost, kRegistered };

// Pages that another process can map: a memfd, followed by a page that nobody may touch.
class Pages {
 public:
  static std::unique_ptr<Pages> create(size_t bytes);
  static std::unique_ptr<Pages> map(int fd, size_t bytes);  // takes the descriptor, whatever comes of it
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const noexcept { return data_; }
  size_t bytes() const noexcept { return bytes_; }
  int fd() const noexcept { return fd_; }

 private:
  Pages(int fd, size_t bytes) : fd_(fd), bytes_(bytes) {}
  int fd_;
  size_t bytes_;
  std::byte* data_ = nullptr;
};

struct Memory {
  std::byte* data = nullptr;
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;
  std::shared_ptr<Pages> pages;  // of device memory

  bool ofDevice() const { return kind != MemoryKind::kHost && kind != MemoryKind::kRegistered; }
};

class MemoryMap {
 public:
  bool add(Memory memory);  // false: it overlaps what is known
  std::optional<Memory> find(const void* address) const;
  // Forgets what begins at `address`, if it is of that kind.
  std::optional<Memory> take(const void* address, MemoryKind kind);
  size_t deviceBytes() const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<const std::byte*, Memory> all_;  // by their ends: the first end beyond an address is the candidate
};

MemoryMap& memoryMap();

uint64_t inodeOf(int fd);  // 0: it cannot be told

}  // namespace tutti::emulation

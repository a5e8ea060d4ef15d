// Owners of the operating system's handles: file descriptors and memory maps.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "process/fork.h"

namespace tutti {

// Descriptors do not outlive a fork() in the child: see process/fork.h.
class UniqueFd {
 public:
  UniqueFd() = default;
  // Takes `fd` over; it may get another number. -1: none, and errno says why.
  explicit UniqueFd(int fd) noexcept : fd_(aboveStandard(fd)) { fork::watch(fd_); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { reset(); }
  int get() const noexcept { return fd_; }
  int release() noexcept {
    fork::unwatch(fd_);
    return std::exchange(fd_, -1);
  }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept {
    if (fd_ < 0) return;
    fork::unwatch(fd_);
    ::close(std::exchange(fd_, -1));
  }

 private:
  // Where a program has closed its standard streams (daemons do), a new descriptor gets their numbers, and what is
  // written to "standard error" goes into it.
  static int aboveStandard(int fd) noexcept;

  int fd_ = -1;
};

class UniqueMap {
 public:
  UniqueMap() = default;
  UniqueMap(void* data, size_t bytes) noexcept : data_(data), bytes_(bytes) {}
  UniqueMap(UniqueMap&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  UniqueMap& operator=(UniqueMap&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~UniqueMap() {
    if (data_) ::munmap(data_, bytes_);
  }
  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  size_t bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Maps `bytes` of the file `fd`, shared, readable and writable. Throws Error.
UniqueMap mapShared(int fd, size_t bytes);
// An anonymous file in memory (memfd) of `bytes`, of that length for ever (F_SEAL_SHRINK, F_SEAL_GROW): nothing in
// /dev/shm, gone with its last user. Throws Error, also where the system seals no such files.
UniqueFd createMemoryFile(const char* name, size_t bytes);
// How long such a file of another process is. Throws Error(kRemote), as mapSealed().
uint64_t sealedBytes(int fd, const char* whose);
// Maps such a file of another process, which must have exactly `bytes`. A file that its maker can still make shorter is
// refused, whatever else it is: touching what is gone ends a process (SIGBUS). Throws Error(kRemote); `whose`, as in
// "the peer's memory file", begins its text.
UniqueMap mapSealed(int fd, size_t bytes, const char* whose);

}  // namespace tutti

// Addresses without memory behind them, for files that are mapped in parts.
#pragma once
#include <sys/types.h>

#include <cstddef>

#include "process/fd.h"

namespace tutti::window {

// Throws Error where the process has a limit on its addresses (ulimit -v), which what has no memory behind it would use
// up.
void requireNoLimit();

// Throws Error: also where there is such a limit.
UniqueMap reserveAddresses(size_t bytes);

// Which file a descriptor is of. A program that closes descriptors which are not its own (daemons do) may be given
// their numbers for files of its own: these must not be mapped.
class FileMark {
 public:
  explicit FileMark(int fd);  // throws Error
  bool isOf(int fd) const noexcept;

 private:
  dev_t device_;
  ino_t number_;
};

// What was mapped there is no more, and its addresses stay reserved. False: it is as it was.
bool forgetPages(std::byte* begin, size_t bytes) noexcept;

}  // namespace tutti::window

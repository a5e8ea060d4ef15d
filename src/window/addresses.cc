#include "window/addresses.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/error.h"

namespace tutti::window {
namespace {

constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

void requireNoLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  throw Error(ErrorCode::kSystem, fmt::format("the process has a limit of {} bytes on its addresses (ulimit -v)",
                                              uint64_t{limit.rlim_cur}));
}

UniqueMap reserveAddresses(size_t bytes) {
  requireNoLimit();
  void* const begin = ::mmap(nullptr, bytes, PROT_NONE, kReserved, -1, 0);
  if (begin == MAP_FAILED) throw systemError(fmt::format("cannot reserve {} bytes of addresses", bytes), errno);
  ::munlock(begin, bytes);  // of a program that locks all that it will have (mlockall), it would count whole
  return UniqueMap(begin, bytes);
}

FileMark::FileMark(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw systemError("cannot look at a memory file", errno);
  device_ = status.st_dev, number_ = status.st_ino;
}

bool FileMark::isOf(int fd) const noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && status.st_dev == device_ && status.st_ino == number_;
}

bool forgetPages(std::byte* begin, size_t bytes) noexcept {
  return ::mmap(begin, bytes, PROT_NONE, kReserved | MAP_FIXED, -1, 0) != MAP_FAILED;
}

}  // namespace tutti::window

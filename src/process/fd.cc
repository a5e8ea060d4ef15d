#include "process/fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstdint>

#include "base/error.h"

namespace tutti {
namespace {

// What keeps its length, for good.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// The limit on files counts for memory files as well, and whoever exceeds it is ended by a signal.
void requireRoom(size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return;
  throw Error(
      ErrorCode::kSystem,
      fmt::format("no shared memory of {} bytes may be made: the limit on the size of files (ulimit -f) is {} bytes",
                  bytes, uint64_t{limit.rlim_cur}));
}

}  // namespace

int UniqueFd::aboveStandard(int fd) noexcept {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
  ::close(fd);
  errno = error;
  return moved;
}

UniqueMap mapShared(int fd, size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED)
    throw systemError(
        fmt::format("cannot map {} bytes of shared memory{}", bytes,
                    errno == ENOMEM ? " (has the process all mappings that vm.max_map_count allows?)" : ""),
        errno);
  return UniqueMap(data, bytes);
}

UniqueFd createMemoryFile(const char* name, size_t bytes) {
  requireRoom(bytes);
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) throw systemError("cannot create a memory file (memfd_create)", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    throw systemError(fmt::format("cannot size a memory file to {} bytes", bytes), errno);
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) throw systemError("cannot seal a memory file (F_ADD_SEALS)", errno);
  return fd;
}

// A file on a disk has no seals to ask for, and one of /dev/shm none of these. One of large pages has them, and ends
// who touches it where there are no more of those. Seals come first: what has them keeps its length from then on, and
// is a file in memory, which answers at once.
uint64_t sealedBytes(int fd, const char* whose) {
  if (const int seals = ::fcntl(fd, F_GET_SEALS); seals < 0 || (seals & kSeals) != kSeals)
    throw Error(ErrorCode::kRemote,
                fmt::format("{} is not sealed (memfd, F_SEAL_SHRINK): it could become shorter, which "
                            "would end this process",
                            whose));
  struct stat status {};
  struct statfs system {};
  if (::fstat(fd, &status) != 0 || ::fstatfs(fd, &system) != 0)
    throw systemError(fmt::format("cannot look at {}", whose), errno);
  if (!S_ISREG(status.st_mode) || system.f_type == HUGETLBFS_MAGIC)
    throw Error(ErrorCode::kRemote, fmt::format("{} is no file in memory", whose));
  return static_cast<uint64_t>(status.st_size);
}

UniqueMap mapSealed(int fd, size_t bytes, const char* whose) {
  if (const uint64_t has = sealedBytes(fd, whose); has != bytes)
    throw Error(ErrorCode::kRemote, fmt::format("{} has {} bytes instead of {}", whose, has, bytes));
  return mapShared(fd, bytes);
}

}  // namespace tutti

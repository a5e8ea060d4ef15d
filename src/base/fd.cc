#include "base/fd.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/error.h"

namespace tutti {

UniqueMap mapShared(int fd, size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) throw systemError(fmt::format("cannot map {} bytes of shared memory", bytes), errno);
  return UniqueMap(data, bytes);
}

UniqueFd createMemoryFile(const char* name, size_t bytes) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd) throw systemError("cannot create a memory file (memfd_create)", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    throw systemError(fmt::format("cannot size a memory file to {} bytes", bytes), errno);
  return fd;
}

}  // namespace tutti

// Which limit stands behind an error of the system's, whose own text does not say: what to add to that.
#pragma once
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tutti {

// The limit of this process, if it has one.
inline rlim_t limitOf(decltype(RLIMIT_NOFILE) resource) noexcept {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

// Of the descriptors of this process a quarter, for what others may have it hold: so that enough are left for its own.
inline size_t quarterOfFiles(size_t least, size_t most) noexcept {
  return static_cast<size_t>(std::clamp<rlim_t>(limitOf(RLIMIT_NOFILE) / 4, least, most));
}

// And half of them, for all such together.
inline size_t halfOfFiles(size_t least) noexcept {
  return static_cast<size_t>(std::max<rlim_t>(limitOf(RLIMIT_NOFILE) / 2, least));
}

// Of `error`, an errno value. Each names the process: other ranks may get to read it.
inline std::string limitBehind(int error) {
  const rlim_t files = limitOf(RLIMIT_NOFILE), bytes = limitOf(RLIMIT_FSIZE);
  if (error == EMFILE && files != RLIM_INFINITY)
    return fmt::format(", of which ulimit -n allows {} to process {}: raise it", uint64_t{files}, ::getpid());
  if (error == EFBIG && bytes != RLIM_INFINITY)
    return fmt::format(": ulimit -f allows {} bytes to process {}: raise it", uint64_t{bytes}, ::getpid());
  return "";
}

// Where there is no room for a thread's stack: the system's library calls that EAGAIN as well.
inline std::string limitOfStacks() {
  const rlim_t memory = limitOf(RLIMIT_AS), stack = limitOf(RLIMIT_STACK);
  if (memory == RLIM_INFINITY) return "";
  constexpr rlim_t kUsualStack = rlim_t{8} << 20;
  const size_t bytes = stack == RLIM_INFINITY ? kUsualStack : stack;
  void* const room = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room != MAP_FAILED) return ::munmap(room, bytes), "";
  return fmt::format(": ulimit -v allows {} KiB of memory to process {}: raise it", uint64_t{memory >> 10}, ::getpid());
}

// The same where a process or a thread could not be started.
inline std::string limitOfTasks(int error) {
  if (error != EAGAIN) return "";
  if (std::string memory = limitOfStacks(); !memory.empty()) return memory;
  const rlim_t tasks = limitOf(RLIMIT_NPROC);
  const std::string own = tasks == RLIM_INFINITY ? "" : fmt::format(" than the {} of ulimit -u", uint64_t{tasks});
  return fmt::format(
      ": user {} may have no more processes and threads{}, or its container may not: raise that, or end "
      "some",
      ::getuid(), own);
}

}  // namespace tutti

#include "process/descriptors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace tutti {
namespace {

std::atomic<bool> lacked{false};

bool lackedNow() noexcept {
  const int copy = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return errno == EMFILE;
  ::close(copy);
  return false;
}

}  // namespace

void noteLackOfDescriptors() noexcept { lacked.store(true, std::memory_order_relaxed); }

std::string lackOfDescriptors(std::string_view text) {
  rlimit limit{};
  if (text.find(fmt::format("to process {}:", ::getpid())) != text.npos) return "";  // errnoText has said it
  if (!lacked.load(std::memory_order_relaxed) && !lackedNow()) return "";
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return "";
  return fmt::format("; this process had no file descriptor left (ulimit -n is {}: raise it)",
                     uint64_t{limit.rlim_cur});
}

}  // namespace tutti

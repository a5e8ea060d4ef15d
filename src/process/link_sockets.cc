#include "process/link_sockets.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "process/fork.h"

namespace tutti {
namespace {

struct LinkSockets {
  fork::Mutex mutex;  // guards what follows
  uint32_t generation = 0;
  std::vector<int> all;

  // Needs the mutex. In a child made by fork the parent's are none: what has their numbers may be the child's own.
  std::vector<int>& ofThisProcess() noexcept {
    if (std::exchange(generation, fork::generation()) != fork::generation()) all.clear();
    return all;
  }
};
LinkSockets& linkSockets = *new LinkSockets;  // made when the library is loaded, never destroyed

}  // namespace

void noteLinkSocket(int fd) {
  const std::lock_guard lock(linkSockets.mutex);
  linkSockets.ofThisProcess().push_back(fd);
}

void forgetLinkSocket(int fd) noexcept {
  const std::lock_guard lock(linkSockets.mutex);
  std::vector<int>& all = linkSockets.ofThisProcess();
  const auto found = std::ranges::find(all, fd);
  if (found == all.end()) return;
  *found = all.back();
  all.pop_back();
}

void endLinkSockets() noexcept {
  const std::lock_guard lock(linkSockets.mutex);
  for (const int fd : linkSockets.ofThisProcess()) ::shutdown(fd, SHUT_WR);
}

void emptyLinkSockets() noexcept {
  constexpr int kMaxReads = 64;
  std::array<char, 4096> waste;
  const std::lock_guard lock(linkSockets.mutex);
  for (const int fd : linkSockets.ofThisProcess())
    for (int reads = 0; reads<kMaxReads&& ::recv(fd, waste.data(), waste.size(), MSG_DONTWAIT)> 0;) ++reads;
}

}  // namespace tutti

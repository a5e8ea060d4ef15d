#include "process/link_sockets.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "process/fork.h"

namespace tutti {
namespace {

// In a child made by fork they stand for its parent's, which are no sockets there.
struct LinkSockets {
  fork::Mutex mutex;  // guards what follows
  std::vector<int> all;
};
LinkSockets& linkSockets = *new LinkSockets;  // made when the library is loaded, never destroyed

}  // namespace

void noteLinkSocket(int fd) {
  const std::lock_guard lock(linkSockets.mutex);
  linkSockets.all.push_back(fd);
}

void forgetLinkSocket(int fd) noexcept {
  const std::lock_guard lock(linkSockets.mutex);
  const auto found = std::ranges::find(linkSockets.all, fd);
  if (found == linkSockets.all.end()) return;
  *found = linkSockets.all.back();
  linkSockets.all.pop_back();
}

void endLinkSockets() noexcept {
  const std::lock_guard lock(linkSockets.mutex);
  for (const int fd : linkSockets.all) ::shutdown(fd, SHUT_WR);
}

void emptyLinkSockets() noexcept {
  constexpr int kMaxReads = 64;
  std::array<char, 4096> waste;
  const std::lock_guard lock(linkSockets.mutex);
  for (const int fd : linkSockets.all)
    for (int reads = 0; reads<kMaxReads&& ::recv(fd, waste.data(), waste.size(), MSG_DONTWAIT)> 0;) ++reads;
}

}  // namespace tutti

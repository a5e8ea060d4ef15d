// A connected pair of Unix stream sockets: ours reads, the other plays the peer.
#pragma once
#include <sys/socket.h>
#include <sys/uio.h>

#include <span>

#include "fuzz/input.h"
#include "process/fd.h"

namespace tutti::fuzz {

struct SocketPair {
  UniqueFd ours, theirs;

  SocketPair() {
    int fds[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    ours = UniqueFd(fds[0]);
    theirs = UniqueFd(fds[1]);
  }
  // What does not fit into the socket's buffer is lost: inputs are short.
  void write(std::span<const std::byte> bytes) const noexcept {
    const ssize_t n = ::send(theirs.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    (void)n;
  }
  void endOfStream() const noexcept { ::shutdown(theirs.get(), SHUT_WR); }
};

}  // namespace tutti::fuzz

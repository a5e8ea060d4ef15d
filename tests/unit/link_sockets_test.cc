// What a process ends of its links when it ends itself, and what is none of its own.
#include "process/link_sockets.h"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace tutti {
namespace {

using LinkEnds = std::array<int, 2>;

LinkEnds newLinkEnds() {
  LinkEnds ends{-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  return ends;
}

bool sendsOn(int fd) { return ::send(fd, "a", 1, MSG_NOSIGNAL) == 1; }

// Its own sockets, which have the numbers of its parent's.
bool childKeepsItsSockets(const LinkEnds& ends) {
  for (const int fd : ends) ::close(fd);
  const LinkEnds own = newLinkEnds();
  if (own != ends) return false;
  emptyLinkSockets();
  endLinkSockets();
  return sendsOn(own[0]) && sendsOn(own[1]);
}

TEST(LinkSockets, OfAParentAreNoneInAForkedChild) {
  const LinkEnds ends = newLinkEnds();
  for (const int fd : ends) noteLinkSocket(fd);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(childKeepsItsSockets(ends) ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  endLinkSockets();
  EXPECT_FALSE(sendsOn(ends[0])) << "it was noted here";
  for (const int fd : ends) {
    forgetLinkSocket(fd);
    ::close(fd);
  }
}

}  // namespace
}  // namespace tutti

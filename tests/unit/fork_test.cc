// What a child made by fork() keeps of the library's descriptors: nothing.
#include "base/fork.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <functional>

#include "base/fd.h"

namespace tutti {
namespace {

struct Pair {
  UniqueFd own, peers;
};

Pair makePair() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// A child that lives until its parent lets it go.
class Child {
 public:
  explicit Child(const std::function<int()>& body) {
    EXPECT_EQ(::pipe2(pipe_, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const int status = body();
      char byte = 0;
      ::close(pipe_[1]);
      while (::read(pipe_[0], &byte, 1) > 0) {
      }
      ::_exit(status);
    }
    ::close(pipe_[0]);
  }
  int end() {
    ::close(pipe_[1]);
    int status = -1;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  int pipe_[2] = {-1, -1};
  pid_t pid_ = -1;
};

TEST(Fork, AChildDoesNotKeepAConnectionAlive) {
  Pair pair = makePair();
  Child child([] { return 0; });
  pair.own.reset();
  // Would wait for ever if the child still held the other end.
  char byte = 0;
  EXPECT_EQ(::recv(pair.peers.get(), &byte, 1, 0), 0);
  EXPECT_EQ(child.end(), 0);
}

TEST(Fork, TheNumberStaysTakenInTheChild) {
  Pair pair = makePair();
  const uint32_t before = fork::generation();
  Child child([&] {
    const int other = ::open("/dev/null", O_RDONLY);
    if (other == pair.own.get() || other == pair.peers.get()) return 1;
    if (::send(pair.own.get(), "x", 1, MSG_NOSIGNAL) != -1) return 2;
    return fork::generation() == before + 1 ? 0 : 3;
  });
  EXPECT_EQ(child.end(), 0);
  EXPECT_EQ(fork::generation(), before);
  EXPECT_EQ(::send(pair.own.get(), "x", 1, MSG_NOSIGNAL), 1) << "the parent's is untouched";
}

TEST(Fork, WhatIsNotOwnedIsKept) {
  Pair pair = makePair();
  const int raw = pair.own.release();
  Child child([raw] { return ::send(raw, "x", 1, MSG_NOSIGNAL) == 1 ? 0 : 1; });
  char byte = 0;
  EXPECT_EQ(::recv(pair.peers.get(), &byte, 1, 0), 1);
  EXPECT_EQ(child.end(), 0);
  ::close(raw);
}

}  // namespace
}  // namespace tutti

// What a child made by fork() keeps of the library's descriptors: nothing.
#include "process/fork.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <atomic>
#include <functional>
#include <thread>

#include "process/fd.h"
#include "process/log.h"
#include "topology/machine.h"
#include "tutti/tutti.h"

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

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // their own locks stay taken in a child
// A thread that does one thing over and over, as long as this lives.
class Repeating {
 public:
  explicit Repeating(std::function<void()> body)
      : thread_([this, body = std::move(body)] {
          while (!stop_.load(std::memory_order_relaxed)) body();
        }) {}
  ~Repeating() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// A child that waits for ever is killed by its alarm.
void expectChildrenCanDo(const std::function<void()>& body) {
  const Repeating other(body);
  for (int forks = 0; forks < 50; ++forks) {
    Child child([&] {
      ::alarm(20);
      body();
      return 0;
    });
    ASSERT_EQ(child.end(), 0) << "the fork number " << forks;
  }
}

TEST(Fork, LeavesTheDetectionOfTheMachineFree) {
  expectChildrenCanDo([] { topology::detectMachine(); });
}

TEST(Fork, LeavesTheLogFree) {
  ::testing::internal::CaptureStderr();
  expectChildrenCanDo([] { log::write(log::Level::kWarn, "a line"); });
  ::testing::internal::GetCapturedStderr();
}

TEST(Fork, LeavesMemoryOfTheLibraryFree) {
  expectChildrenCanDo([] {
    void* memory = nullptr;
    EXPECT_EQ(tuttiMemAlloc(&memory, 64), tuttiSuccess);
    EXPECT_EQ(tuttiMemFree(memory), tuttiSuccess);
  });
}
#endif

}  // namespace
}  // namespace tutti

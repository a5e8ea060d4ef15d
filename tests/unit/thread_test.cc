// What a thread does with signals.
#include "process/thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/limits.h"
#include "support/sanitized.h"

namespace tutti {
namespace {

bool waits() {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGXFSZ) == 1;
}

// Were the signal only put off, it would end the process when it is let through again.
TEST(FileSignal, IsAnErrorWhileItIsHeld) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::tmpfile(), std::fclose);
  ASSERT_NE(file, nullptr);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{4, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  ssize_t first = 0, second = 0;
  int error = 0;
  {
    const FileSignalHeld held;
    first = ::write(::fileno(file.get()), "12345678", 8);
    second = ::write(::fileno(file.get()), "5678", 4);
    error = errno;
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(first, 4);
  EXPECT_EQ(second, -1);
  EXPECT_EQ(error, EFBIG);
  EXPECT_FALSE(waits());
}

// What a thread's stack lacks is memory, and not a number of threads.
TEST(Threads, ThatHaveNoRoomForTheirStackSayWhichLimitItIs) {
  if (kSanitized) GTEST_SKIP() << "needs no sanitizer: those reserve more than any limit";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit little{1 << 20, before.rlim_max};  // less than there is already
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &little), 0);
  const bool stacks = !limitOfStacks().empty();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(stacks);
  EXPECT_EQ(limitOfTasks(EAGAIN).find("ulimit -v"), std::string::npos);
}

// One that the program holds back, and that has come, is the program's.
TEST(FileSignal, ThatCameEarlierIsLeftWaiting) {
  sigset_t one, before;
  ::sigemptyset(&one);
  ::sigaddset(&one, SIGXFSZ);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &one, &before), 0);
  ASSERT_EQ(::pthread_kill(::pthread_self(), SIGXFSZ), 0);
  { const FileSignalHeld held; }
  EXPECT_TRUE(waits());
  const timespec atOnce{};
  EXPECT_EQ(::sigtimedwait(&one, nullptr, &atOnce), SIGXFSZ);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

}  // namespace
}  // namespace tutti

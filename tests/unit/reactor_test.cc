// What a handler or a task throws is told, and the loop goes on without it.
#include "net/reactor.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace tutti::control {
namespace {

TEST(Reactor, GoesOnAfterATaskThatThrows) {
  Reactor reactor;
  std::vector<std::string> faults;
  reactor.post([] { throw std::runtime_error("first"); });
  reactor.after(std::chrono::milliseconds(1), [] { throw std::runtime_error("second"); });
  reactor.after(std::chrono::milliseconds(2), [&] { reactor.stop(); });
  reactor.run([&](const std::string& what) { faults.push_back(what); });
  EXPECT_EQ(faults, (std::vector<std::string>{"first", "second"}));
}

TEST(Reactor, ForgetsAHandlerThatThrows) {
  int fds[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const UniqueFd here(fds[0]), there(fds[1]);
  Reactor reactor;
  int calls = 0, faults = 0;
  reactor.watch(here.get(), EPOLLOUT, [&](uint32_t) {  // always writable
    ++calls;
    throw std::runtime_error("no");
  });
  reactor.after(std::chrono::milliseconds(5), [&] { reactor.stop(); });
  reactor.run([&](const std::string&) { ++faults; });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(faults, 1);
}

TEST(Reactor, EndsWhereNobodyCanBeTold) {
  Reactor reactor;
  bool later = false;
  reactor.post([] { throw std::bad_alloc(); });
  reactor.after(std::chrono::milliseconds(1), [&] { later = true; });
  EXPECT_FALSE(reactor.run([](const std::string&) { throw std::bad_alloc(); }));
  EXPECT_FALSE(later);
}

TEST(Reactor, SaysWhetherItWasStopped) {
  Reactor reactor;
  int woken = 0;
  reactor.whenWoken([&] {
    ++woken;
    reactor.stop();
  });
  reactor.wake();
  EXPECT_TRUE(reactor.run([](const std::string&) {}));
  EXPECT_EQ(woken, 1);
}

}  // namespace
}  // namespace tutti::control

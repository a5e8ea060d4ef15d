// One thread's event loop: sockets, timers, and tasks from other threads. Sleeps in epoll; an eventfd wakes it.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"

namespace tutti::control {

// post() may be called by any thread; everything else by the loop's thread, or by the maker before run().
class Reactor {
 public:
  using Token = uint64_t;
  using Handler = std::function<void(uint32_t events)>;
  using Task = std::function<void()>;
  using Clock = Deadline::Clock;

  Reactor();  // throws Error
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  // `events` are epoll's (EPOLLIN, EPOLLOUT). The descriptor stays the caller's: forget() it before closing it.
  Token watch(int fd, uint32_t events, Handler handler);
  void change(Token token, uint32_t events) noexcept;
  void forget(Token token) noexcept;

  Token after(Clock::duration span, Task task);
  void cancel(Token timer) noexcept;

  void post(Task task);
  void run();
  void stop() noexcept;

 private:
  struct Watch {
    int fd;
    uint32_t events;
    std::shared_ptr<Handler> handler;
  };
  int timeoutMs() const noexcept;
  void runTimers();
  void runTasks();
  void wake() noexcept;

  UniqueFd epoll_, wakeUp_;
  Token lastToken_ = 0;  // 0 is the eventfd's
  std::unordered_map<Token, Watch> watches_;
  std::map<std::pair<Clock::time_point, Token>, Task> timers_;
  std::unordered_map<Token, Clock::time_point> timerTimes_;
  bool stopped_ = false;

  std::mutex mutex_;  // guards tasks_ and awake_
  std::vector<Task> tasks_;
  bool awake_ = false;  // a wake-up is already on its way
};

}  // namespace tutti::control

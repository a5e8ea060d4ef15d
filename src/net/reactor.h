// One thread's event loop: sockets, timers, and tasks from other threads. Sleeps in epoll; an eventfd wakes it.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "process/fd.h"

namespace tutti {

// post(), wake() and stop() may be called by any thread; everything else by the loop's thread, or by the maker before
// run().
class Reactor {
 public:
  using Token = uint64_t;
  using Handler = std::function<void(uint32_t events)>;
  using Task = std::function<void()>;
  using Fault = std::function<void(const std::string& what)>;
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

  // Any thread. Dropped when run() has returned, or returns before its turn.
  void post(Task task);
  // What every wake() calls, whatever else woke the loop: for news that nothing can be posted for.
  void whenWoken(Task task) { woken_ = std::move(task); }
  void wake() noexcept;
  // `onTrouble` hears what a handler or a task threw; the others go on, and a handler that threw is forgotten. Until
  // stop(); false: until `onTrouble` threw as well.
  bool run(const Fault& onFault) noexcept;
  void stop() noexcept;
  // As run() does at its end, for who never comes to it: whoever waits for a task hears that it will not run.
  void close() noexcept;

 private:
  struct Watch {
    int fd;
    uint32_t events;
    std::shared_ptr<Handler> handler;
  };
  int timeoutMs() const noexcept;
  void dispatch(Token token, uint32_t events);
  void runTimers();
  void runTasks();
  template <class Body>
  bool attempt(const Body& body) noexcept;
  void fault(const std::exception& thrown) noexcept;

  UniqueFd epoll_, wakeUp_;
  Token lastToken_ = 0;  // 0 is the eventfd's
  std::unordered_map<Token, Watch> watches_;
  std::map<std::pair<Clock::time_point, Token>, Task> timers_;
  std::unordered_map<Token, Clock::time_point> timerTimes_;
  Task woken_;
  std::atomic<bool> stopped_{false};
  bool broken_ = false;
  const Fault* onFault_ = nullptr;

  std::mutex mutex_;  // guards what follows
  std::vector<Task> tasks_;
  bool awake_ = false;   // a wake-up is already on its way
  bool closed_ = false;  // nobody runs tasks any more
};

}  // namespace tutti

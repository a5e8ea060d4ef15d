#include "net/reactor.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <span>

#include "base/error.h"

namespace tutti {

Reactor::Reactor() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wakeUp_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !wakeUp_) throw systemError("cannot make an event loop (epoll, eventfd)", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeUp_.get(), &event) != 0)
    throw systemError("cannot watch an eventfd", errno);
}

Reactor::Token Reactor::watch(int fd, uint32_t events, Handler handler) {
  const Token token = ++lastToken_;
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  const auto at = watches_.emplace(token, Watch{fd, events, std::make_shared<Handler>(std::move(handler))}).first;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return token;
  const int error = errno;
  watches_.erase(at);
  throw systemError("cannot watch a socket", error);
}

void Reactor::change(Token token, uint32_t events) noexcept {
  const auto at = watches_.find(token);
  if (at == watches_.end() || at->second.events == events) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, at->second.fd, &event);
  at->second.events = events;
}

void Reactor::forget(Token token) noexcept {
  const auto at = watches_.find(token);
  if (at == watches_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at->second.fd, nullptr);
  watches_.erase(at);
}

Reactor::Token Reactor::after(Clock::duration span, Task task) {
  const Token token = ++lastToken_;
  const auto when = Clock::now() + span;
  const auto at = timers_.emplace(std::pair(when, token), std::move(task)).first;
  try {
    timerTimes_.emplace(token, when);
  } catch (const std::exception&) {  // nobody could cancel it
    timers_.erase(at);
    throw;
  }
  return token;
}

void Reactor::cancel(Token timer) noexcept {
  const auto at = timerTimes_.find(timer);
  if (at == timerTimes_.end()) return;
  timers_.erase({at->second, timer});
  timerTimes_.erase(at);
}

void Reactor::wake() noexcept {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wakeUp_.get(), &one, sizeof one);
}

void Reactor::post(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    tasks_.push_back(std::move(task));
    if (std::exchange(awake_, true)) return;
  }
  wake();
}

void Reactor::close() noexcept {
  std::vector<Task> dropped;
  std::lock_guard lock(mutex_);
  closed_ = true;
  dropped.swap(tasks_);
}

void Reactor::stop() noexcept {
  stopped_ = true;
  wake();
}

int Reactor::timeoutMs() const noexcept {
  if (timers_.empty()) return -1;
  const auto left = timers_.begin()->first.first - Clock::now();
  if (left <= Clock::duration::zero()) return 0;
  // Rounded up: waking a little too early would mean going round without work.
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

template <class Body>
bool Reactor::attempt(const Body& body) noexcept {
  try {
    body();
    return true;
  } catch (const std::exception& e) {
    fault(e);
    return false;
  }
}

// Who cannot even be told has no use for a loop that goes on without what has thrown.
void Reactor::fault(const std::exception& thrown) noexcept {
  try {
    (*onFault_)(thrown.what());
  } catch (const std::exception&) {
    stopped_ = broken_ = true;
  }
}

void Reactor::runTimers() {
  const auto now = Clock::now();
  while (!stopped_ && !timers_.empty() && timers_.begin()->first.first <= now) {
    auto due = timers_.extract(timers_.begin());
    timerTimes_.erase(due.key().second);
    attempt(due.mapped());
  }
}

void Reactor::runTasks() {
  std::vector<Task> tasks;
  {
    std::lock_guard lock(mutex_);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = ::read(wakeUp_.get(), &count, sizeof count);
    awake_ = false;
    tasks.swap(tasks_);
  }
  if (woken_) attempt(woken_);
  for (Task& task : tasks) {
    if (stopped_) return;
    attempt(task);
  }
}

void Reactor::dispatch(Token token, uint32_t events) {
  if (token == 0) return runTasks();
  // An earlier handler of this round may have forgotten this one; and a handler may forget itself while it runs.
  const auto at = watches_.find(token);
  if (at == watches_.end()) return;
  const auto handler = at->second.handler;
  if (!attempt([&] { (*handler)(events); })) forget(token);
}

bool Reactor::run(const Fault& onFault) noexcept {
  onFault_ = &onFault;
  const std::unique_ptr<Reactor, void (*)(Reactor*)> atTheEnd(this, [](Reactor* self) { self->close(); });
  std::array<epoll_event, 64> events;
  while (!stopped_) {
    const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeoutMs());
    for (const epoll_event& event : std::span(events).first(static_cast<size_t>(std::max(n, 0)))) {
      if (stopped_) return !broken_;
      dispatch(event.data.u64, event.events);
    }
    runTimers();
  }
  return !broken_;
}

}  // namespace tutti

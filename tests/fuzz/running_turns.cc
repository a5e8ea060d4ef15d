// The library's thread is a fiber of this one. It sleeps in epoll_wait and nowhere else, which stands here in the place
// of the C library's: there it makes way.
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>

#include "emulation/device/fiber.h"
#include "fuzz/input.h"
#include "fuzz/running.h"
#include "support/patience.h"

namespace tutti::fuzz {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook(1);  // at what other threads may have brought

}  // namespace

class Running::Way {
 public:
  explicit Way(Service& kept) : kept_(kept), fibers_(emulation::takeFibers(1)) {
    here = this;
    fibers_.front()->start(
        [](void* self) {
          auto* const way = static_cast<Way*>(self);
          way->kept_.run();
          way->over_ = true;
        },
        this);
    goOn();
  }
  ~Way() {
    kept_.halt();
    const auto deadline = Deadline::in(test::longWait());
    for (; !over_; rest()) require(!deadline.passed());
    fibers_.front()->join();
    emulation::giveFibers(std::move(fibers_));
    here = nullptr;
  }

  bool over() const noexcept { return over_; }
  void goOn() {
    constexpr int kMostTurns = 1000;  // of one that always has something to do
    for (int turns = 0; turns < kMostTurns && turn(); ++turns) {
    }
  }
  void rest() {
    if (!turn()) sleep({-1, 0, 0}, Deadline::in(kLook));
  }
  // Until something happens to the descriptor, or it is this one's turn, or so late.
  void sleep(pollfd one, Deadline deadline) const {
    pollfd both[] = {one, {epoll_, POLLIN, 0}};
    const auto span = std::min({deadline.left(), until_.left(), milliseconds(1000)});
    ::poll(both, 2, static_cast<int>(span.count()));
  }
  // False: it has nothing to do.
  bool turn() {
    if (over_) return false;
    inside = this;
    moved_ = false;
    fibers_.front()->resume();
    inside = nullptr;
    return moved_ || over_;
  }

  int wait(int epoll, epoll_event* events, int most, int timeoutMs) {
    epoll_ = epoll;
    until_ = timeoutMs < 0 ? Deadline::never() : Deadline::in(milliseconds(timeoutMs));
    for (;;) {
      const int n = ::epoll_pwait(epoll, events, most, 0, nullptr);
      if (n != 0 || until_.passed()) {
        moved_ = true;
        return n;
      }
      fibers_.front()->suspend();
    }
  }

  static thread_local Way* here;    // of this thread
  static thread_local Way* inside;  // whose turn it is

 private:
  Service& kept_;
  std::vector<std::unique_ptr<emulation::Fiber>> fibers_;
  bool over_ = false, moved_ = false;
  int epoll_ = -1;
  Deadline until_ = Deadline::never();
};

thread_local Running::Way* Running::Way::here = nullptr;
thread_local Running::Way* Running::Way::inside = nullptr;

Running::Running(Service& kept) : way_(std::make_unique<Way>(kept)) {}
Running::~Running() = default;
bool Running::over() const noexcept { return way_->over(); }
void Running::goOn() { way_->goOn(); }
void Running::rest() { way_->rest(); }

bool awaitEvents(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd one{fd, events, 0};
    if (::poll(&one, 1, 0) > 0) return true;
    auto* const way = Running::Way::here;
    if (way != nullptr && way->turn()) continue;
    if (deadline.passed() || (way != nullptr && way->over())) return false;
    if (way != nullptr)
      way->sleep(one, deadline);
    else
      ::poll(&one, 1, static_cast<int>(deadline.left().count()));
  }
}

// It has had its turn: what has not come by then has not been said.
Deadline soon() { return Deadline::in(milliseconds(0)); }

}  // namespace tutti::fuzz

// To sweep the stacks that it sets aside for variables that are gone would cost more than all the rest.
extern "C" const char* __asan_default_options() { return "detect_stack_use_after_return=0"; }

extern "C" int epoll_wait(int epoll, epoll_event* events, int most, int timeoutMs) {
  if (auto* const way = tutti::fuzz::Running::Way::inside) return way->wait(epoll, events, most, timeoutMs);
  return ::epoll_pwait(epoll, events, most, timeoutMs, nullptr);
}

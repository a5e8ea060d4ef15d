// One call on its way: waits for its turn, gets its plan and links, runs its lanes.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "comm/call.h"
#include "comm/plans.h"
#include "comm/recorder.h"
#include "comm/watch.h"

namespace tutti::comm {

class Communicator;

// Calls of one kind on one communicator pass one after the other, in the order in which they were made, whichever
// thread or stream runs them.
class Turnstile {
 public:
  // By the thread that makes the call: there is one at a time. Others may ask idle(), hence the atomic.
  uint64_t take() noexcept {
    const uint64_t ticket = next_.load(std::memory_order_relaxed);
    next_.store(ticket + 1, std::memory_order_relaxed);
    return ticket;
  }
  // Acquire: pairs with pass(); what the call before did to plans and links is visible.
  bool isTurn(uint64_t ticket) const noexcept { return current_.load(std::memory_order_acquire) == ticket; }
  void pass(uint64_t ticket) noexcept { current_.store(ticket + 1, std::memory_order_release); }
  uint64_t passed() const noexcept { return current_.load(std::memory_order_relaxed); }
  bool idle() const noexcept {
    return current_.load(std::memory_order_acquire) == next_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> current_{0};
};

class Task {
 public:
  // Takes the ticket: the order of construction is the order of the calls. `blocking`: the caller is going to wait.
  Task(Communicator& communicator, Call call, bool blocking);

  // Does what can be done now; `moved` is set when that was something. A failure is recorded in the communicator, which
  // every other task of it then sees. Never blocks.
  void advance(bool& moved) noexcept;
  bool done() const noexcept { return phase_ == Phase::kDone; }
  bool failed() const noexcept { return failed_; }
  // The slow checks of a wait: a failure known to the communicator, other ranks' whereabouts, the deadline.
  void check() noexcept;
  Communicator& communicator() const noexcept { return *communicator_; }
  std::string describe() const { return call_.describe(ticket_); }
  bool overNetwork() const noexcept;  // some of its links have drivers
  template <class Visit>
  void visitDrivers(Visit visit) const {
    if (phase_ == Phase::kRunning)
      for (const auto& lane : plan_->lanes) lane.visitDrivers(visit);
  }

 private:
  enum class Phase : uint8_t { kTurn, kBinding, kRunning, kHeld, kDone };
  void start();
  void run(bool& moved);
  void finish(CallState how) noexcept;
  void cutOff(const engine::LaneFailure& failure);
  void disagree(const engine::LaneFailure& failure);
  void hold(const Error& error);
  Watch& watch();
  [[noreturn]] void throwHeld() const;
  void failWith(const Error& error) noexcept;
  [[noreturn]] void report(const engine::LaneFailure& failure) const;
  link::Fingerprint plannedMark() const noexcept;
  int waitingFor() const noexcept;
  uint64_t progress() const noexcept;
  void note() noexcept;
  std::string waits() const;

  Communicator* communicator_;
  Call call_;
  Turnstile* turnstile_;
  uint64_t ticket_;
  Phase phase_ = Phase::kTurn;
  BoundPlan* plan_ = nullptr;
  Recorder::Token record_;
  std::unique_ptr<Watch> watch_;  // once the call has had to wait
  std::optional<Error> held_;     // went wrong, for a reason that another rank or the control plane can tell better
  Deadline heldUntil_ = Deadline::never();
  int suspect_ = -1;     // whose answer is waited for
  int cutOffFrom_ = -1;  // whose connection has ended
  bool blocking_;
  bool failed_ = false;
  std::byte barrier_[2] = {};  // what a barrier reduces
};

// Runs the tasks side by side on the calling thread until all are done. Throws the error of the first that failed.
void runTasks(std::vector<Task>& tasks);
void runTask(Task& task);

}  // namespace tutti::comm

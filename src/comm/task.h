// One call on its way: waits for its turn, gets its plan and links, runs its lanes.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "comm/host_state.h"
#include "comm/plans.h"
#include "diagnose/stall_detector.h"
#include "team/call.h"
#include "team/operation.h"
#include "team/recorder.h"

namespace tutti::comm {

// One that runs already.
struct BegunCall {
  BoundPlan* plan = nullptr;
  uint64_t ticket = 0, madeTicks = 0;
  link::Fingerprint mark;  // with its plan
  Recorder::Token record = 0;
};

class Task {
 public:
  // Takes the ticket: the order of construction is the order of the calls. `blocking`: the caller is going to wait.
  // `operation`: is told how it ended; null: the caller sees.
  Task(HostState& state, Call&& call, bool blocking, Operation* operation = nullptr);
  // Goes on with it; the caller is going to wait.
  Task(HostState& state, Call&& call, const BegunCall& begun);

  // Does what can be done now; `moved` is set when that was something. A failure is recorded in the team, where every
  // other task of it then sees it. Never blocks.
  void advance(bool& moved) noexcept;
  bool done() const noexcept { return phase_ == Phase::kDone; }
  bool failed() const noexcept { return failed_; }
  // The slow checks of a wait: a failure known to the team, other ranks' whereabouts, the deadline.
  void check() noexcept;
  HostState& state() const noexcept { return *state_; }
  std::string describe() const { return call_.describe(ticket_); }
  bool overNetwork() const noexcept;     // some of its links have drivers
  bool askedTheSystem() const noexcept;  // the last advance() did, for what has come over them
  template <class Visit>
  void visitDrivers(Visit visit) const {
    if (phase_ == Phase::kRunning)
      for (const auto& lane : plan_->lanes) lane.visitDrivers(visit);
  }

 private:
  enum class Phase : uint8_t { kTurn, kBinding, kRunning, kHeld, kDone };
  Team& team() const noexcept { return state_->team(); }
  void start();
  void traceFromHere(Trace& trace) noexcept;
  void traceEnd(CallState how, uint64_t now) noexcept;
  void startLanes() noexcept;
  void run(bool& moved);
  void finish(CallState how) noexcept;
  void tellOperation() noexcept;
  void cutOff(const engine::LaneFailure& failure);
  void disagree(const engine::LaneFailure& failure);
  void hold(const Error& error, std::chrono::milliseconds patience);
  StallDetector& detector();
  [[noreturn]] void throwHeld() const;
  void failWith(const Error& error) noexcept;
  [[noreturn]] void report(const engine::LaneFailure& failure) const;
  Error otherMessage(const engine::LaneFailure& failure) const;
  BoundPlan& readiedPlan();
  int waitingFor() const noexcept;
  uint64_t progress() const noexcept;
  void note() noexcept;
  void noteWait() noexcept;
  std::string waits() const;

  HostState* state_;
  Call call_;
  TicketQueue* queue_;
  uint64_t ticket_;
  link::Fingerprint mark_;  // with its plan from start() on
  Phase phase_ = Phase::kTurn;
  BoundPlan* plan_ = nullptr;
  Operation* operation_;
  uint64_t madeTicks_;
  Recorder::Token record_;
  std::unique_ptr<StallDetector> detector_;  // once the call has had to wait
  std::optional<LaneWaits> waits_;           // while it runs, where it is traced
  uint64_t begunTicks_ = 0;                  // where it is traced
  struct Look {
    uint64_t ticks = 0, progress = 0;  // 0: there was none
    int peer = -1;
  } look_;                     // the last that found nothing to do, and of which somebody asks
  std::optional<Error> held_;  // went wrong, for a reason that another rank or the control plane can tell better
  Deadline heldUntil_ = Deadline::never();
  int suspect_ = -1;     // whose answer is waited for
  int cutOffFrom_ = -1;  // whose connection has ended
  bool blocking_;
  bool failed_ = false;
  std::byte barrier_[2] = {};  // what a barrier reduces
};

// Runs the tasks side by side on the calling thread until all are done. Throws the error of the first that failed.
void runTasks(std::span<Task> tasks);

}  // namespace tutti::comm

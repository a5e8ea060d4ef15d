#include "comm/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/sleeper.h"
#include "engine/waiter.h"
#include "team/mismatch.h"

namespace tutti::comm {

namespace {

// A broken link is mostly the first sign that a rank has died. The control plane knows who and why; it gets so long to
// say it. A rank whose calls differ is there, and gets longer to say what they are.
constexpr std::chrono::milliseconds kPatience(500), kLongPatience(2000);

}  // namespace

Task::Task(HostState& state, Call&& call, bool blocking, Operation* operation)
    : state_(&state),
      call_(std::move(call)),
      queue_(&state.queueFor(call_)),
      ticket_(queue_->take()),
      mark_(call_.fingerprint(ticket_)),
      operation_(operation),
      madeTicks_(readTicks()),
      record_(team().recorder().begin(call_, mark_, blocking, madeTicks_)),
      blocking_(blocking) {}

Task::Task(HostState& state, Call&& call, const BegunCall& begun)
    : state_(&state),
      call_(std::move(call)),
      queue_(&state.queueFor(call_)),
      ticket_(begun.ticket),
      mark_(begun.mark),
      phase_(Phase::kRunning),
      plan_(begun.plan),
      operation_(nullptr),
      madeTicks_(begun.madeTicks),
      record_(begun.record),
      blocking_(true) {}

void Task::advance(bool& moved) noexcept {
  try {
    if (phase_ == Phase::kTurn) {
      if (!queue_->isTurn(ticket_)) return;
      if (team().broken()) throw team().failure(describe());
      start();
      moved = true;
    }
    if (phase_ == Phase::kBinding) {
      if (!plan_->bound && !state_->plans().bind(*plan_)) return;
      moved = true;
    }
    if (phase_ == Phase::kBinding || phase_ == Phase::kRunning) run(moved);
  } catch (const Error& error) {
    failWith(error);
  } catch (const std::bad_alloc&) {
    failWith(errorOrOutOfMemory(
        [&] { return Error(ErrorCode::kSystem, fmt::format("out of host memory in {}", describe())); }));
  } catch (const std::exception& error) {
    failWith(errorOrOutOfMemory(
        [&] { return Error(ErrorCode::kInternal, fmt::format("{} in {}", error.what(), describe())); }));
  }
}

void Task::failWith(const Error& error) noexcept {
  team().fail(error);
  // Also calls that fail pass one after the other: whoever overtook would count as the last one, and those before it
  // as done while they still run. The ones before it fail now too, so its turn is near.
  if (phase_ == Phase::kTurn && !queue_->isTurn(ticket_)) return;
  failed_ = true;
  if (phase_ == Phase::kRunning || phase_ == Phase::kHeld)
    for (auto& lane : plan_->lanes) lane.takeBack();
  note();
  finish(CallState::kFailed);
}

void Task::start() {
  plan_ = call_.readied == nullptr ? &state_->plans().find(call_) : &readiedPlan();
  mark_ = planned(mark_, plan_->schedule, static_cast<uint32_t>(plan_->lanes.size()));
  team().recorder().started(record_, mark_);
  if (state_->trace() != nullptr) [[unlikely]]
    traceFromHere(*state_->trace());
  phase_ = Phase::kBinding;
}

// Without the memory for that it is not traced.
void Task::traceFromHere(Trace& trace) noexcept try {
  waits_.emplace(trace, call_, plan_->lanes.size());
  begunTicks_ = readTicks();
} catch (const std::exception&) {
}

// Not out of the recorder, which may keep the call no longer.
void Task::traceEnd(CallState how, uint64_t now) noexcept {
  CallRecord record;
  record.line = lineOf(call_);
  record.peer = record.line == CallLine::kCollective ? -1 : call_.root;
  record.blocking = blocking_;
  record.fingerprint = mark_;
  record.tag = call_.tag;
  record.state = how;
  record.queuedTicks = madeTicks_;
  record.endedTicks = now;
  state_->trace()->ended(record, begunTicks_);
}

// A persistent call has its plan from the time when it was made ready, which was in its turn too; or finds it now,
// where that was in a group which did not run.
BoundPlan& Task::readiedPlan() {
  BoundPlan*& kept = call_.readied->plan;
  if (call_.onlyReadies || kept == nullptr) kept = &state_->plans().find(call_);
  state_->plans().uses(*kept);
  return *kept;
}

void Task::startLanes() noexcept {
  const RepeatKey now = RepeatKey::of(call_);
  plan_->lastMark = mark_;
  plan_->lastOf = nullptr;
  if (now.repeats(std::exchange(plan_->last, now))) {
    for (auto& lane : plan_->lanes) lane.startAgain(call_.send, call_.recv, mark_);
    return;
  }
  for (uint32_t c = 0; c < plan_->lanes.size(); ++c)
    plan_->lanes[c].start(plan_->bindings[c], workOf(call_, mark_, *plan_, c));
}

void Task::run(bool& moved) {
  auto& lanes = plan_->lanes;
  if (phase_ == Phase::kBinding) {
    if (call_.onlyReadies) return finish(CallState::kDone);
    if (call_.collective == Collective::kBarrier) {
      call_.send = &barrier_[0];
      call_.recv = &barrier_[1];
    }
    startLanes();
    team().recorder().moved(record_, CallState::kRunning);
    phase_ = Phase::kRunning;
  }
  bool all = true;
  for (auto& lane : lanes) {
    const engine::LaneState state = lane.run(moved);
    if (waits_) [[unlikely]]
      waits_->look(static_cast<size_t>(&lane - lanes.data()),
                   state == engine::LaneState::kBlocked ? lane.waitingFor() : -1, lane.position());
    if (state == engine::LaneState::kFailed) {
      if (lane.failure().kind == engine::LaneFailure::Kind::kLink) return cutOff(lane.failure());
      return disagree(lane.failure());
    }
    all = all && state == engine::LaneState::kDone;
  }
  if (!all) return;
  finish(CallState::kDone);
}

void Task::finish(CallState how) noexcept {
  const uint64_t now = readTicks();
  team().recorder().ended(record_, how, now);
  if (how == CallState::kDone && !call_.onlyReadies) team().recorder().completed(call_, now - madeTicks_);
  if (waits_ && !call_.onlyReadies) [[unlikely]]
    traceEnd(how, now);
  phase_ = Phase::kDone;
  queue_->pass(ticket_);
  link::ring(&state_->links().bell());  // the next call may sleep on another thread
  if (operation_ != nullptr) tellOperation();
}

void Task::tellOperation() noexcept {
  const auto part = partOf(call_);
  if (!failed_) return operation_->end(part);
  operation_->end(part, errorOrOutOfMemory([this] { return team().failure(describe()); }));
}

void Task::report(const engine::LaneFailure& failure) const {
  const std::string self = team().rankName(team().rank());
  const std::string peer = team().rankName(failure.peer);
  if (failure.kind == engine::LaneFailure::Kind::kBytes)
    throw Error(ErrorCode::kInvalidUsage, fmt::format("counts do not match in {}: {} sent {} bytes, {} expected {}",
                                                      describe(), peer, failure.bytes, self, failure.expected));
  if (call_.collective == Collective::kSendRecv) throw otherMessage(failure);
  throw disagreement(team(), mark_, call_.tag, failure.peer, failure.theirs, failure.bytes);
}

Error Task::otherMessage(const engine::LaneFailure& failure) const {
  const std::string self = team().rankName(team().rank()), peer = team().rankName(failure.peer);
  const link::Fingerprint theirs = tagged(failure.theirs, call_.tag);
  // What came may be of an earlier number, where this rank has only made its part ready.
  if (const auto same = team().recorder().find(lineOf(call_), call_.root, theirs.operation); same && same->onlyReadies)
    return persistenceMismatch(describeMessage(call_.sends, call_.root, same->fingerprint, same->tag), self, peer);
  if (hasOtherTag(theirs, team().size())) {
    const bool untagged = call_.tag != 0 && failure.theirs.root == 0;
    return tagMismatch(describeMessage(call_.sends, call_.root, mark_.call()), self, call_.tag, peer,
                       untagged ? std::optional<uint64_t>(0) : std::nullopt);
  }
  return mismatch(self, describe(), peer, describeMessage(!call_.sends, team().rank(), theirs, call_.tag));
}

// What came is of a later call than this one: the peer's call of this number has sent nothing here. It is asked what
// that was, so that both calls can be named; its answer comes through the detector.
void Task::disagree(const engine::LaneFailure& failure) {
  const bool isLater = failure.kind == engine::LaneFailure::Kind::kMismatch &&
                       static_cast<int32_t>(failure.theirs.operation - static_cast<uint32_t>(ticket_)) > 0;
  if (!isLater) report(failure);
  try {
    report(failure);
  } catch (const Error& error) {
    hold(error, kLongPatience);
  }
  detector().hurry();
  suspect_ = failure.peer;
}

void Task::hold(const Error& error, std::chrono::milliseconds patience) {
  held_ = error;
  heldUntil_ = Deadline::in(patience);
  note();
  phase_ = Phase::kHeld;
}

void Task::cutOff(const engine::LaneFailure& failure) {
  hold(Error(ErrorCode::kRemote,
             fmt::format("{} was cut off during {}: {}", team().rankName(failure.peer), describe(), failure.text)),
       kPatience);
  detector().doubt(failure.peer);
  cutOffFrom_ = failure.peer;
}

StallDetector& Task::detector() {
  if (!detector_) detector_ = std::make_unique<StallDetector>(team(), call_, ticket_, blocking_);
  return *detector_;
}

void Task::throwHeld() const {
  const auto departure = cutOffFrom_ >= 0 ? detector_->departureOf(cutOffFrom_) : std::nullopt;
  throw departure ? *departure : *held_;
}

int Task::waitingFor() const noexcept {
  if (phase_ == Phase::kBinding) return plan_->waitingFor;
  if (phase_ == Phase::kHeld) return suspect_;
  int peer = -1;
  if (phase_ == Phase::kRunning)
    for (const auto& lane : plan_->lanes)
      if (lane.waitingFor() >= 0) peer = lane.waitingFor();
  return peer;
}

uint64_t Task::progress() const noexcept {
  uint64_t sum = static_cast<uint64_t>(phase_);
  if (phase_ == Phase::kRunning)
    for (const auto& lane : plan_->lanes) sum += lane.position();
  visitDrivers([&](const link::Driver& driver) { sum += driver.advances(); });
  return sum;
}

bool Task::overNetwork() const noexcept {
  return phase_ == Phase::kRunning && std::ranges::any_of(plan_->lanes, &engine::Lane::hasDrivers);
}

bool Task::askedTheSystem() const noexcept {
  return phase_ == Phase::kRunning && std::ranges::any_of(plan_->lanes, &engine::Lane::askedTheSystem);
}

// For the flight recorder: how far the call is. A round is done when the steps are that lag furthest behind.
void Task::note() noexcept {
  if (phase_ == Phase::kTurn || plan_ == nullptr) return;
  uint64_t done = 0, all = 0;
  if (phase_ == Phase::kRunning || phase_ == Phase::kHeld)
    for (const auto& lane : plan_->lanes) done += lane.roundsDone(), all += lane.rounds();
  team().recorder().progressed(record_, waitingFor(), done, all);
}

// From look to look: what lies between two that saw the same was all waiting.
void Task::noteWait() noexcept {
  const Look now{readTicks(), progress(), waitingFor()};
  if (look_.ticks != 0 && look_.progress == now.progress && look_.peer == now.peer)
    team().recorder().waited(now.peer, now.ticks - look_.ticks);
  look_ = now;
}

std::string Task::waits() const {
  const std::string peer = waitingFor() < 0 ? "" : team().rankName(waitingFor());
  if (phase_ == Phase::kBinding) return peer.empty() ? "links to other ranks" : "a link to " + peer;
  return peer.empty() ? "its data to leave" : peer;
}

void Task::check() noexcept {
  // Whoever waits for its turn waits for calls that have deadlines and failures of their own (see failWith); its own
  // time begins with its turn.
  if (phase_ == Phase::kDone || phase_ == Phase::kTurn) return;
  try {
    if (team().broken()) throw team().failure(describe());
    if (phase_ == Phase::kHeld) {
      if (heldUntil_.passed()) throwHeld();
      if (cutOffFrom_ >= 0) detector().doubt(cutOffFrom_);
      if (suspect_ < 0) return;
    } else {
      note();
      noteWait();
    }
    detector().look(waitingFor(), progress(), overNetwork(), [this] { return waits(); });
  } catch (const Error& error) {
    failWith(error);
  } catch (const std::exception&) {
    failWith(outOfMemory);
  }
}

namespace {

bool advanceAll(std::span<Task> tasks, bool& moved) noexcept {
  bool all = true;
  for (Task& task : tasks) {
    if (task.done()) continue;
    task.advance(moved);
    all = all && task.done();
  }
  return all;
}

bool onSockets(std::span<const Task> tasks) noexcept {
  return std::ranges::any_of(tasks, [](const Task& task) { return task.overNetwork(); });
}

bool askedTheSystem(std::span<const Task> tasks) noexcept {
  return std::ranges::any_of(tasks, [](const Task& task) { return task.askedTheSystem(); });
}

// Sleeps until there may be news. True when there was some before it came to that.
bool dozeOn(std::span<Task> tasks, engine::Sleeper& sleeper) noexcept {
  const bool sockets = onSockets(tasks);
  for (const Task& task : tasks) {
    Links& links = task.state().links();
    if (!task.done()) sleeper.hear(links.bell(), sockets ? links.ear() : nullptr, task.state().crowd().felt());
  }
  bool moved = false;
  if (!advanceAll(tasks, moved) && !moved) {
    for (const Task& task : tasks) task.visitDrivers([&](link::Driver& driver) { sleeper.watch(driver); });
    sleeper.sleep();
  }
  sleeper.rise();
  return moved;
}

}  // namespace

void runTasks(std::span<Task> tasks) {
  if (tasks.empty()) return;
  HostState& first = tasks.front().state();
  const double ranksPerCore = first.team().ranksPerCore();
  engine::Waiter waiter(ranksPerCore, first.crowd());
  engine::Sleeper sleeper(engine::longestSleep(ranksPerCore));
  for (;;) {
    bool moved = false;
    if (advanceAll(tasks, moved)) break;
    if (moved) {
      waiter.reset();
      continue;
    }
    if (!waiter.pause(onSockets(tasks), askedTheSystem(tasks))) continue;
    for (Task& task : tasks) task.check();
    if (waiter.mayDoze() && dozeOn(tasks, sleeper)) waiter.reset();
  }
  for (Task& task : tasks)
    if (task.failed()) throw task.state().team().failure(task.describe());
}

}  // namespace tutti::comm

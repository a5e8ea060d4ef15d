#include "comm/task.h"

#include <fmt/format.h>

#include "comm/communicator.h"
#include "engine/waiter.h"

namespace tutti::comm {

Task::Task(Communicator& communicator, Call call)
    : communicator_(&communicator),
      call_(std::move(call)),
      turnstile_(&communicator.turnstileFor(call_)),
      ticket_(turnstile_->take()),
      deadline_(Deadline::never()) {}

void Task::advance(bool& moved) noexcept {
  try {
    if (phase_ == Phase::kTurn) {
      if (!turnstile_->isTurn(ticket_)) return;
      if (communicator_->broken()) throw communicator_->failure(describe());
      start();
      moved = true;
    }
    if (phase_ == Phase::kBinding) {
      if (!plan_->bound && !communicator_->plans().bind(*plan_)) return;
      moved = true;
    }
    if (phase_ != Phase::kDone) run(moved);
  } catch (const Error& error) {
    failWith(error);
  } catch (const std::exception& error) {
    failWith(Error(ErrorCode::kInternal, fmt::format("{} in {}", error.what(), describe())));
  }
}

void Task::failWith(const Error& error) noexcept {
  communicator_->fail(error);
  failed_ = true;
  finish();
}

void Task::start() {
  plan_ = &communicator_->plans().find(call_);
  phase_ = Phase::kBinding;
}

void Task::run(bool& moved) {
  auto& lanes = plan_->lanes;
  if (phase_ == Phase::kBinding) {
    if (call_.collective == Collective::kBarrier) {
      call_.send = &barrier_[0];
      call_.recv = &barrier_[1];
    }
    const auto channels = static_cast<uint32_t>(lanes.size());
    for (uint32_t c = 0; c < channels; ++c)
      lanes[c].start(plan_->bindings[c], toWork(call_, ticket_, plan_->schedule, plan_->chunkBytes, c, channels));
    phase_ = Phase::kRunning;
  }
  bool all = true;
  for (auto& lane : lanes) {
    const engine::LaneState state = lane.run(moved);
    if (state == engine::LaneState::kFailed) report(lane.failure());
    all = all && state == engine::LaneState::kDone;
  }
  if (!all) return;
  finish();
}

void Task::finish() noexcept {
  phase_ = Phase::kDone;
  turnstile_->pass(ticket_);
  link::ring(&communicator_->bell());  // the next call may sleep on another thread
}

void Task::report(const engine::LaneFailure& failure) const {
  using Kind = engine::LaneFailure::Kind;
  const std::string peer = communicator_->rankName(failure.peer);
  switch (failure.kind) {
    case Kind::kMismatch:
      throw Error(ErrorCode::kInvalidUsage,
                  fmt::format("calls do not match: rank {} is in {}, {} is in {}. All ranks must make the same calls, "
                              "with the same counts, types, operators and roots, in the same order",
                              communicator_->rank(), describe(), peer, comm::describe(failure.theirs)));
    case Kind::kBytes:
      throw Error(ErrorCode::kInvalidUsage,
                  fmt::format("counts do not match in {}: {} sent {} bytes, rank {} expected {}", describe(), peer,
                              failure.bytes, communicator_->rank(), failure.expected));
    default:
      throw Error(ErrorCode::kRemote, fmt::format("{} in {}: {}", peer, describe(), failure.text));
  }
}

std::string Task::waitingFor() const {
  if (phase_ == Phase::kTurn) return "its turn behind an earlier call on this communicator";
  if (phase_ == Phase::kBinding) return "links to other ranks";
  std::string text;
  for (const auto& lane : plan_->lanes)
    if (lane.waitingFor() >= 0) text = communicator_->rankName(lane.waitingFor());
  return text.empty() ? "its data to leave" : text;
}

void Task::check() noexcept {
  if (phase_ == Phase::kDone) return;
  try {
    if (communicator_->broken()) throw communicator_->failure(describe());
    if (!hasDeadline_) {
      deadline_ = Deadline::in(communicator_->config().operationTimeout);
      hasDeadline_ = true;
    }
    if (deadline_.passed())
      throw Error(ErrorCode::kTimeout,
                  fmt::format("{} did not finish within {} ms: rank {} waits for {}", describe(),
                              communicator_->config().operationTimeout.count(), communicator_->rank(), waitingFor()));
  } catch (const Error& error) {
    failWith(error);
  } catch (const std::exception&) {
    failWith(Error(ErrorCode::kSystem, "out of memory while waiting"));
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

// Sleeps until there may be news: on the bell when one communicator waits on mapped memory only, else on its sockets.
bool dozeOn(std::span<Task> tasks) noexcept {
  Communicator& first = tasks.front().communicator();
  link::Bell* bell = &first.bell();
  std::vector<pollfd> sockets;
  for (const Task& task : tasks) {
    if (&task.communicator() != &first) bell = nullptr;
    task.visitDrivers([&](const link::Driver& driver) {
      sockets.push_back({driver.pollFd(), driver.pollEvents(), 0});
    });
  }
  if (bell == nullptr) {
    engine::doze(nullptr, 0, sockets);
    return false;
  }
  const uint32_t seen = bell->rings.load(std::memory_order_acquire);
  engine::armBell(*bell);
  bool moved = false;
  if (!advanceAll(tasks, moved) && !moved) engine::doze(bell, seen, sockets);
  engine::disarmBell(*bell);
  return moved;
}

void runAll(std::span<Task> tasks) {
  engine::Waiter waiter(tasks.front().communicator().spins());
  for (;;) {
    bool moved = false;
    if (advanceAll(tasks, moved)) break;
    if (moved) {
      waiter.reset();
      continue;
    }
    if (!waiter.pause()) continue;
    for (Task& task : tasks) task.check();
    if (waiter.mayDoze() && dozeOn(tasks)) waiter.reset();
  }
  for (Task& task : tasks)
    if (task.failed()) throw task.communicator().failure(task.describe());
}

}  // namespace

void runTasks(std::vector<Task>& tasks) {
  if (!tasks.empty()) runAll(tasks);
}

void runTask(Task& task) { runAll(std::span(&task, 1)); }

}  // namespace tutti::comm

#include "comm/at_once.h"

namespace tutti::comm {
namespace {

// As long as a Waiter gives the core no pause, in looks at memory. Who shares its core with others has nothing to gain
// from looking twice.
uint32_t looksOf(HostState& state) noexcept {
  return state.team().ranksPerCore() > 1 ? 1 : engine::Waiter::kLooksBeforeRelaxing;
}

uint32_t looksTaken(const engine::Lane& lane) noexcept {
  return lane.askedTheSystem() ? engine::Waiter::kLooksOfASystemCall : 1;
}

// Null: the call needs a Task from the begin on. One that is kept, and was the last of its plan, has been looked at.
BoundPlan* planOf(HostState& state, const Call& call) noexcept {
  BoundPlan* kept = nullptr;
  BoundPlan*& plan = call.readied != nullptr ? call.readied->plan : kept;
  if (plan != nullptr && plan->lastOf == &call) return plan;
  if (call.onlyReadies || call.collective == Collective::kBarrier || state.trace() != nullptr) return nullptr;
  if (plan == nullptr) plan = state.plans().recall(call);
  const bool fits = plan != nullptr && plan->bound && plan->lanes.size() == 1;
  if (!fits || !RepeatKey::of(call).repeats(plan->last)) return nullptr;
  plan->lastOf = call.isKept ? &call : nullptr;
  return plan;
}

void begin(TicketQueue& queue, const Call& call, BoundPlan& plan, BegunCall& begun) noexcept {
  begun.madeTicks = readTicks();
  begun.plan = &plan;
  begun.ticket = queue.take();
  begun.mark = plan.lastMark;
  begun.mark.operation = static_cast<uint32_t>(begun.ticket);
  plan.lanes.front().startAgain(call.send, call.recv, begun.mark);
}

void note(HostState& state, const Call& call, BegunCall& begun) noexcept {
  begun.record = state.team().recorder().begin(call, begun.mark, true, begun.madeTicks, CallState::kRunning);
  state.plans().uses(*begun.plan);
}

void end(HostState& state, TicketQueue& queue, const Call& call, const BegunCall& begun) noexcept {
  const uint64_t now = readTicks();
  Recorder& recorder = state.team().recorder();
  recorder.ended(begun.record, CallState::kDone, now);
  recorder.completed(call, now - begun.madeTicks);
  queue.pass(begun.ticket);
  link::ring(&state.links().bell());  // the next call may sleep on another thread
}

}  // namespace

Again runAtOnce(HostState& state, const Call& call, BegunCall& begun) noexcept {
  TicketQueue& queue = state.queueFor(call);
  if (!queue.idle() || state.team().broken()) return Again::kNot;
  BoundPlan* const plan = planOf(state, call);
  if (plan == nullptr) return Again::kNot;
  begin(queue, call, *plan, begun);
  engine::Lane& lane = plan->lanes.front();
  bool moved = false;
  // A short one posts first: whoever waits for that need not wait for the record. What may take long is on record
  // before.
  const bool isShort = lane.isOnShortWay();
  if (!isShort) note(state, call, begun);
  engine::LaneState now = lane.run(moved);
  if (isShort) note(state, call, begun);
  const uint32_t most = now == engine::LaneState::kBlocked ? looksOf(state) : 0;
  for (uint32_t looks = looksTaken(lane); now == engine::LaneState::kBlocked && looks < most; looks += looksTaken(lane))
    now = lane.run(moved);
  if (now != engine::LaneState::kDone) return Again::kGoesOn;
  end(state, queue, call, begun);
  return Again::kDone;
}

}  // namespace tutti::comm

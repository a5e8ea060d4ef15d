#include "comm/at_once.h"

namespace tutti::comm {
namespace {

// As long as a Waiter gives the core no pause, in looks at memory. Who shares its core with others has nothing to gain
// from looking twice.
uint32_t looksOf(HostState& state) noexcept {
  return state.team().ranksPerCore() > 1 || state.crowd().felt() ? 1 : engine::Waiter::kLooksBeforeRelaxing;
}

BoundPlan* planOf(HostState& state, const Call& call) noexcept {
  BoundPlan* kept = nullptr;
  BoundPlan*& plan = call.readied != nullptr ? call.readied->plan : kept;
  if (plan == nullptr) plan = state.plans().recall(call);
  const bool fits = plan != nullptr && plan->bound && plan->lanes.size() == 1;
  return fits && RepeatKey::of(call).repeats(plan->last) ? plan : nullptr;
}

void begin(HostState& state, TicketQueue& queue, const Call& call, BegunCall& begun) noexcept {
  begun.madeTicks = readTicks();
  begun.ticket = queue.take();
  begun.mark = begun.plan->lastMark;
  begun.mark.operation = static_cast<uint32_t>(begun.ticket);
  begun.record = state.team().recorder().begin(call, begun.mark, true, begun.madeTicks, CallState::kRunning);
  state.plans().uses(*begun.plan);
  begun.plan->lanes.front().startAgain(call.send, call.recv, begun.mark);
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
  if (call.onlyReadies || call.collective == Collective::kBarrier || state.trace() != nullptr) return Again::kNot;
  TicketQueue& queue = state.queueFor(call);
  if (!queue.idle() || state.team().broken()) return Again::kNot;
  begun.plan = planOf(state, call);
  if (begun.plan == nullptr) return Again::kNot;
  begin(state, queue, call, begun);
  engine::Lane& lane = begun.plan->lanes.front();
  bool moved = false;
  const uint32_t most = looksOf(state);
  for (uint32_t looks = 0; looks < most; looks += lane.askedTheSystem() ? engine::Waiter::kLooksOfASystemCall : 1) {
    const engine::LaneState now = lane.run(moved);
    if (now == engine::LaneState::kFailed) break;
    if (now == engine::LaneState::kBlocked) continue;
    end(state, queue, call, begun);
    return Again::kDone;
  }
  return Again::kGoesOn;
}

}  // namespace tutti::comm

// A lane on the short way: a call that was made before, through its links once.
#include <cstring>

#include "engine/lane.h"

namespace tutti::engine {
namespace {

using Kind = schedule::Operand::Kind;

constexpr size_t kWord = 8;

// By far the most are of a word, for which a call of memcpy takes longer than all else.
void copyShort(std::byte* to, const std::byte* from, size_t bytes) noexcept {
  if (bytes == kWord)
    std::memcpy(to, from, kWord);
  else if (to != from)
    std::memcpy(to, from, bytes);
}

}  // namespace

// Both ways are the same steps in the same order. Where a link has a driver, or the input is scaled, it is the long
// one.
bool Lane::isShort() noexcept {
  Binding& binding = *binding_;
  if (!binding.triedShort) {
    binding.triedShort = true;
    binding.again.clear();
    if (!binding.hasDrivers && !work_.scalesInput)
      workOut({*binding.schedule, binding.ins, binding.outs, binding.scratch.data(), binding.slotBytes}, work_.layout,
              work_.elementBytes, work_.arithmetic.divisor > 1, binding.again);
  }
  return !binding.again.steps.empty();
}

void Lane::startAgain(const std::byte* input, std::byte* output, const link::Fingerprint& fingerprint) noexcept {
  work_.input = input;
  work_.output = output;
  work_.fingerprint = fingerprint;
  short_ = isShort();
  if (!short_) {
    start(*binding_, work_);
    binding_->triedShort = true;  // in vain
    return;
  }
  iteration_ = 0;
  step_ = 0;
  waitingFor_ = -1;
}

LaneState Lane::runShort(bool& moved) noexcept {
  const ShortSteps& all = binding_->again;
  const auto count = static_cast<uint32_t>(all.steps.size());
  for (; step_ < count; ++step_) {
    const ShortStep& step = all.steps[step_];
    const ShortLinks links{{all.ins.data() + step.ins, step.inCount}, {all.outs.data() + step.outs, step.outCount}};
    if (!isReady(links)) return LaneState::kBlocked;
    if (!isExpected(links, step.bytes)) return LaneState::kFailed;
    execute(step, links);
    finish(links, step.bytes);
    moved = true;
  }
  iteration_ = iterations_;
  return LaneState::kDone;
}

bool Lane::isReady(const ShortLinks& links) noexcept {
  for (const link::RecvEnd* end : links.ins)
    if (!end->ready()) return waitingFor_ = end->peer, false;
  for (link::SendEnd* end : links.outs)
    if (!end->hasRoom()) return waitingFor_ = end->peer, false;
  return true;
}

bool Lane::isExpected(const ShortLinks& links, uint32_t bytes) noexcept {
  for (const link::RecvEnd* end : links.ins) {
    const link::Said said = end->said();
    if (said.fingerprint != work_.fingerprint || said.bytes != bytes) [[unlikely]]
      return differs(end->peer, said, bytes), false;
    // Nobody lends so little.
    if (end->carried() != link::PayloadLocation::kInSlot) [[unlikely]]
      return refuses(end->peer, kNotHere);
  }
  return true;
}

void Lane::execute(const ShortStep& step, const ShortLinks& links) noexcept {
  const ShortPlace* const from = binding_->again.from.data() + step.from;
  const ShortPlace* const to = binding_->again.to.data() + step.to;
  const auto sourceOf = [&](const ShortPlace& place) -> const std::byte* {
    if (place.kind == Kind::kLink) return links.ins[place.link]->payload(step.bytes);
    if (place.kind == Kind::kScratch) return place.scratch;
    return (place.kind == Kind::kInput ? work_.input : work_.output) + place.offset;
  };
  const auto destinationOf = [&](const ShortPlace& place) -> std::byte* {
    if (place.kind == Kind::kLink) return links.outs[place.link]->place(step.bytes);
    return place.kind == Kind::kScratch ? place.scratch : work_.output + place.offset;
  };
  if (step.copies) {
    const std::byte* const source = sourceOf(*from);
    for (int i = 0; i < step.toCount; ++i) copyShort(destinationOf(to[i]), source, step.bytes);
    return;
  }
  const std::byte** const sources = binding_->sources.data();
  std::byte** const destinations = binding_->destinations.data();
  for (int i = 0; i < step.fromCount; ++i) sources[i] = sourceOf(from[i]);
  for (int i = 0; i < step.toCount; ++i) destinations[i] = destinationOf(to[i]);
  kernels::Arithmetic arithmetic = work_.arithmetic;
  if (!step.finalises) arithmetic.divisor = 1;
  kernels::combine(arithmetic, destinations, step.toCount, sources, step.fromCount, step.count);
}

void Lane::finish(const ShortLinks& links, uint32_t bytes) noexcept {
  for (link::RecvEnd* end : links.ins) {
    end->releaseQuietly();
    owesWakeups_ |= end->wakeups.owe(end->peerBell, end->fifo.depth);
  }
  for (link::SendEnd* end : links.outs) {
    end->postQuietly(work_.fingerprint, bytes);
    owesWakeups_ |= end->wakeups.owe(end->peerBell, end->fifo.depth);
  }
}

}  // namespace tutti::engine

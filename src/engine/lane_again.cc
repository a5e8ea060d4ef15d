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
              work_.arithmetic, binding.again);
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
  const std::span<const ShortStep> steps = binding_->again.steps;
  for (; step_ < steps.size(); ++step_) {
    const ShortStep& step = steps[step_];
    if (!isReady(step)) return LaneState::kBlocked;
    if (!isExpected(step)) return LaneState::kFailed;
    execute(step);
    finish(step);
    moved = true;
  }
  iteration_ = iterations_;
  return LaneState::kDone;
}

bool Lane::isReady(const ShortStep& step) noexcept {
  for (const link::RecvEnd* end : step.ins)
    if (!end->ready()) return waitingFor_ = end->peer, false;
  for (link::SendEnd* end : step.outs)
    if (!end->hasRoom()) return waitingFor_ = end->peer, false;
  return true;
}

bool Lane::isExpected(const ShortStep& step) noexcept {
  for (const link::RecvEnd* end : step.ins) {
    const link::Said said = end->said();
    if (said.fingerprint != work_.fingerprint || said.bytes != step.bytes) [[unlikely]]
      return differs(end->peer, said, step.bytes), false;
    // Nobody lends so little.
    if (end->carried() != link::PayloadLocation::kInSlot) [[unlikely]]
      return refuses(end->peer, kNotHere);
  }
  return true;
}

const std::byte* Lane::sourceOf(const ShortPlace& place, uint32_t bytes) const noexcept {
  if (place.kind == Kind::kLink) return place.in->payload(bytes);
  if (place.kind == Kind::kScratch) return place.scratch;
  return (place.kind == Kind::kInput ? work_.input : work_.output) + place.offset;
}

std::byte* Lane::destinationOf(const ShortPlace& place, uint32_t bytes) const noexcept {
  if (place.kind == Kind::kLink) return place.out->place(bytes);
  return place.kind == Kind::kScratch ? place.scratch : work_.output + place.offset;
}

void Lane::execute(const ShortStep& step) noexcept {
  if (step.copies) {
    const std::byte* const source = sourceOf(step.from[0], step.bytes);
    for (const ShortPlace& to : step.to) copyShort(destinationOf(to, step.bytes), source, step.bytes);
    return;
  }
  const std::byte** const sources = binding_->sources.data();
  std::byte** const destinations = binding_->destinations.data();
  for (size_t i = 0; i < step.from.size(); ++i) sources[i] = sourceOf(step.from[i], step.bytes);
  for (size_t i = 0; i < step.to.size(); ++i) destinations[i] = destinationOf(step.to[i], step.bytes);
  const auto from = static_cast<int>(step.from.size()), to = static_cast<int>(step.to.size());
  if (step.sums != nullptr) return step.sums(destinations, to, sources, from, step.count);
  kernels::Arithmetic arithmetic = work_.arithmetic;
  if (!step.finalises) arithmetic.divisor = 1;
  kernels::combine(arithmetic, destinations, to, sources, from, step.count);
}

void Lane::finish(const ShortStep& step) noexcept {
  for (link::RecvEnd* end : step.ins) {
    end->releaseQuietly();
    owesWakeups_ |= end->wakeups.owe(end->peerBell, end->fifo.depth);
  }
  for (link::SendEnd* end : step.outs) {
    end->postQuietly(work_.fingerprint, step.bytes);
    owesWakeups_ |= end->wakeups.owe(end->peerBell, end->fifo.depth);
  }
}

}  // namespace tutti::engine

// A lane on the short way: a call that was made before, through its links once.
#include <cstring>

#include "base/ticks.h"
#include "engine/lane.h"
#include "kernels/host/write_around.h"

namespace tutti::engine {
namespace {

using Kind = schedule::Operand::Kind;

constexpr size_t kWord = 8;

// By far the most are of a word, for which a call of memcpy takes longer than all else.
inline void copyShort(std::byte* to, const std::byte* from, size_t bytes) noexcept {
  if (bytes == kWord)
    std::memcpy(to, from, kWord);
  else if (to != from)
    std::memcpy(to, from, bytes);
}

// Of the caller's.
struct Buffers {
  const std::byte* input;
  std::byte* output;
};

inline const std::byte* sourceOf(const ShortPlace& place, const Buffers& buffers, uint32_t bytes) noexcept {
  if (place.kind == Kind::kLink) return place.in->payload(bytes);
  if (place.kind == Kind::kScratch) return place.scratch;
  return (place.kind == Kind::kInput ? buffers.input : buffers.output) + place.offset;
}

inline std::byte* destinationOf(const ShortPlace& place, const Buffers& buffers, uint32_t bytes) noexcept {
  if (place.kind == Kind::kLink) return place.out->place(bytes);
  return place.kind == Kind::kScratch ? place.scratch : buffers.output + place.offset;
}

// For whom the step has to wait; -1: for nobody.
inline int waitsFor(const ShortStep& step) noexcept {
  for (const link::RecvEnd* end : step.ins)
    if (!end->ready()) return end->peer;
  for (link::SendEnd* end : step.outs)
    if (!end->hasRoomFor(step.bytes)) return end->peer;
  return -1;
}

// What its reader had last is written around the caches where it is far away (Stores).
void fillSlot(const ShortStep& step, std::byte* to, const std::byte* from) noexcept {
  const Stores::Choice choice = step.stores->nextOfMany();
  const uint64_t begun = choice.isTimed ? readTicks() : 0;
  if (choice.around) {
    kernels::copyAround(to, from, step.bytes);
    kernels::settle();
  } else {
    std::memcpy(to, from, step.bytes);
  }
  if (choice.isTimed) step.stores->took(choice.around, step.bytes, readTicks() - begun);
}

inline void copyOne(const ShortStep& step, const Buffers& buffers) noexcept {
  const std::byte* const source = sourceOf(step.from[0], buffers, step.bytes);
  for (const ShortPlace& to : step.to) {
    std::byte* const place = destinationOf(to, buffers, step.bytes);
    if (to.kind == Kind::kLink && step.stores != nullptr) [[unlikely]]
      fillSlot(step, place, source);
    else
      copyShort(place, source, step.bytes);
  }
}

// What is owed to whom it is told: true if it is anything.
inline bool finish(const ShortStep& step, const link::Fingerprint& mark) noexcept {
  bool owes = false;
  for (link::RecvEnd* end : step.ins) {
    end->releaseQuietly();
    owes |= end->wakeups.owe(end->peerBell, end->fifo.depth);
  }
  for (link::SendEnd* end : step.outs) {
    end->postQuietly(mark, step.bytes);
    owes |= end->wakeups.owe(end->peerBell, end->fifo.depth);
  }
  return owes;
}

}  // namespace

// Both ways are the same steps in the same order. Where a link has a driver, the input is scaled, or a buffer is in the
// window that peers have, it is the long one.
bool Lane::isShort() noexcept {
  Binding& binding = *binding_;
  if (!binding.triedShort) {
    binding.triedShort = true;
    binding.again.clear();
    if (!binding.hasDrivers && !work_.scalesInput)
      workOut({*binding.schedule, binding.ins, binding.outs, binding.scratch.data(), binding.slotBytes, binding.stores},
              work_.layout, work_.arithmetic, binding.again);
  }
  if (binding.again.steps.empty()) return false;
  places_ = {};
  if (work_.layout.longestShare() * work_.elementBytes >= binding.leastMapped) findPlaces();
  return !places_.input && !places_.output;
}

// From this step on: something lies elsewhere than in a slot.
LaneState Lane::leaveShortWay(const ShortStep& step, bool& moved) noexcept {
  start(*binding_, work_);
  binding_->triedShort = true;
  step_ = step.number;
  iteration_ = binding_->schedule->steps[step_].lag;
  return goOn(moved);
}

void Lane::startAgain(const std::byte* input, std::byte* output, const link::Fingerprint& fingerprint) noexcept {
  const bool isSame = input == work_.input && output == work_.output;
  work_.input = input;
  work_.output = output;
  work_.fingerprint = fingerprint;
  // Who was on it with these buffers is still.
  if (!(short_ && isSame) && !isShort()) {
    start(*binding_, work_);
    binding_->triedShort = true;  // in vain
    return;
  }
  short_ = true;
  iteration_ = 0;
  step_ = 0;
  waitingFor_ = -1;
}

LaneState Lane::runShort(bool& moved) noexcept {
  const std::vector<ShortStep>& steps = binding_->again.steps;
  const Buffers buffers{work_.input, work_.output};
  for (auto next = steps.begin() + step_; next != steps.end(); ++next, ++step_) {
    const ShortStep& step = *next;
    if (const int peer = waitsFor(step); peer >= 0) return waitingFor_ = peer, LaneState::kBlocked;
    if (!step.ins.empty() && !isExpected(step)) [[unlikely]]
      return failure_.kind == LaneFailure::Kind::kNone ? leaveShortWay(step, moved) : LaneState::kFailed;
    if (step.copies)
      copyOne(step, buffers);
    else if (step.sumsTwo != nullptr)
      step.sumsTwo(destinationOf(step.to[0], buffers, step.bytes), sourceOf(step.from[0], buffers, step.bytes),
                   sourceOf(step.from[1], buffers, step.bytes), step.count);
    else
      addUp(step);
    owesWakeups_ |= finish(step, work_.fingerprint);
    moved = true;
  }
  iteration_ = iterations_;
  return LaneState::kDone;
}

// False without a failure: it is no short step, though its call is as short as ever.
bool Lane::isExpected(const ShortStep& step) noexcept {
  for (const link::RecvEnd* end : step.ins) {
    const link::Said said = end->said();
    if (said.fingerprint != work_.fingerprint || said.bytes != step.bytes) [[unlikely]]
      return differs(end->peer, said, step.bytes), false;
    if (end->carried() != link::PayloadLocation::kInSlot) [[unlikely]]
      return false;
  }
  return true;
}

// Of several sources.
void Lane::addUp(const ShortStep& step) noexcept {
  const Buffers buffers{work_.input, work_.output};
  const std::byte** const sources = binding_->sources.data();
  std::byte** const destinations = binding_->destinations.data();
  for (size_t i = 0; i < step.from.size(); ++i) sources[i] = sourceOf(step.from[i], buffers, step.bytes);
  for (size_t i = 0; i < step.to.size(); ++i) destinations[i] = destinationOf(step.to[i], buffers, step.bytes);
  const auto from = static_cast<int>(step.from.size()), to = static_cast<int>(step.to.size());
  if (step.sums != nullptr) return step.sums(destinations, to, sources, from, step.count);
  kernels::Arithmetic arithmetic = work_.arithmetic;
  if (!step.finalises) arithmetic.divisor = 1;
  kernels::combine(arithmetic, destinations, to, sources, from, step.count);
}

}  // namespace tutti::engine

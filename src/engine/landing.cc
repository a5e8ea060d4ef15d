// Lanes over drivers that reach the caller's buffers: what is sent goes from there to the socket, and what only lands
// comes from the socket to there. The other half of each copy, into a slot and out of it, is spared.
#include <algorithm>

#include "engine/lane.h"

namespace tutti::engine {

using schedule::Step;

// Null: it goes through slots. What a driver takes it has read once the slot is released, which its receiver need not
// know of. That nothing is written over it before is proved (proof::DirectBy::kLane), or waited for (goesOverUnsent).
const std::byte* Lane::placeSent(const Step& step, size_t round, size_t bytes) const noexcept {
  return bytes < kLeastPieceLent ? nullptr : placeOf(binding_->lending[step_], step, round);
}

bool Lane::driveFor(const Lack& lack, const Step& step, size_t round, size_t bytes) noexcept {
  if (lack.source == nullptr || !lack.driver->reachesBuffers())
    return went(lack.driver->drive(), *lack.driver, lack.peer);
  const link::Landing expected{lack.source->received, work_.fingerprint, static_cast<uint32_t>(bytes), nullptr};
  if (!mayLand(step, bytes)) return went(lack.driver->drive(expected), *lack.driver, lack.peer);
  landing_ = expected;
  landing_.to = work_.output + work_.layout.piece(step.segment, round, byInput(step)).output * work_.elementBytes;
  landingAt_ = lack.source;
  return went(lack.driver->drive(landing_), *lack.driver, lack.peer);
}

// The step's turn has come but for what it waits for: it may as well be written now. That is what is proved, too, where
// the step's write is ordered by all steps before it and by the post of what it receives.
bool Lane::mayLand(const Step& step, size_t bytes) const noexcept {
  return bytes >= kLeastPieceLent && binding_->singleCopy != link::SingleCopy::kNever && lands(step);
}

// Whether the step would write over what this rank has posted and its driver has still to send. What it receives is
// there: where that is of another call the step writes nothing, and says so.
bool Lane::goesOverUnsent(const Step& step, size_t round, size_t bytes) noexcept {
  const auto to = binding_->schedule->to(step);
  if (std::ranges::count(to, schedule::Operand::output()) == 0) return false;
  if (binding_->outs.front()->isReleased(firstPosted_ + round + 1)) return false;
  const link::Said said = binding_->ins.front()->said();
  return said.fingerprint == work_.fingerprint && said.bytes == bytes;
}

void Lane::stopLanding() noexcept {
  if (landingAt_ == nullptr) return;
  landingAt_->driver->withdraw();
  landingAt_ = nullptr;
}

}  // namespace tutti::engine

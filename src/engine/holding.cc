// Lanes over drivers that send from memory only while they hold it: RDMA, whose device has to know it. It is held for a
// whole call, and only where the program has said that it stays (window/lasting_memory.h): so it is known before the
// first slot is posted whether what it lies in can be sent from there. Where it cannot, slots are filled as ever.
#include <algorithm>

#include "engine/lane.h"

namespace tutti::engine {

using schedule::Stays;

template <class Visit>
void Lane::visitHolders(Visit visit) const {
  for (link::SendEnd* end : binding_->outs)
    if (end->driver != nullptr && end->driver->holdsBuffers()) visit(*end->driver);
}

void Lane::holdBuffers() noexcept {
  if (!hold(Stays::kInInput, heldInput_)) heldInput_.reset();
  // In place it is one piece of memory, held twice.
  if (!hold(Stays::kInOutput, heldOutput_)) heldOutput_.reset();
}

// By all of them or by none: a step fills the slots of several links in one pass.
bool Lane::hold(Stays where, std::optional<window::Lasting>& held) noexcept {
  if (std::ranges::count(binding_->lending, where) == 0) return false;
  const auto own = static_cast<uint32_t>(binding_->schedule->rank);
  const bool isInput = where == Stays::kInInput;
  const size_t bytes = (isInput ? work_.layout.inputExtent(own) : work_.layout.outputExtent(own)) * work_.elementBytes;
  held = window::LastingMemory::ofProcess().find(isInput ? work_.input : work_.output, bytes);
  if (!held) return false;
  size_t done = 0, wanted = 0;
  visitHolders([&](link::Driver& driver) {
    if (wanted++ == done && driver.hold(*held)) ++done;
  });
  // The program may have deregistered it meanwhile, which is known of what is held from now on. Else nobody would give
  // up what drivers keep.
  if (done == wanted && !window::LastingMemory::ofProcess().tellAgain(*held)) return true;
  visitHolders([&](link::Driver& driver) {
    if (done > 0) driver.letGo(*held), --done;
  });
  return false;
}

bool Lane::isHeld(Stays where) const noexcept {
  return where == Stays::kInInput ? heldInput_.has_value() : where == Stays::kInOutput && heldOutput_.has_value();
}

void Lane::letGo() noexcept {
  for (auto* held : {&heldInput_, &heldOutput_}) {
    if (*held) visitHolders([&](link::Driver& driver) { driver.letGo(**held); });
    held->reset();
  }
}

}  // namespace tutti::engine

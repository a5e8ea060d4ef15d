// What lanes lend, to be read where it lies, and what they read so: by the kernel, in a window that is mapped, or by a
// driver (landing.cc). The receiver of what is mapped takes it for an operand as it is, a sum too.
#include <algorithm>
#include <exception>

#include "base/error.h"
#include "base/ticks.h"
#include "engine/lane.h"
#include "window/own_window.h"

namespace tutti::engine {

using schedule::Operand;
using schedule::Schedule;
using schedule::Stays;
using schedule::Step;

namespace {

constexpr std::string_view kTookBack = "its call failed while its buffer was read";

}  // namespace

// ---- What this call may lend ---------------------------------------------------------------------------------------

bool Binding::handsOverOnce(size_t rounds) const noexcept {
  for (size_t i = 0; i < ahead.size(); ++i)
    if (lending[i] != Stays::kNowhere && ahead[i].roundsFrom(0, rounds) < rounds) return false;
  return true;
}

bool Lane::decidesToLend() noexcept {
  const bool allMapped = lendsAllMapped();
  startedTicks_ = allMapped ? 0 : readTicks();
  // Who has to give way at each hand-over waits for a slice of somebody's time.
  const bool isCrowded = binding_->crowd != nullptr && binding_->crowd->felt() && binding_->handsOverOnce(rounds_);
  // Also where it is not asked: all ranks count the same calls.
  const bool isFaster = binding_->trial.lends(lendableBytes_, !liesApart(), isCrowded);
  const bool wishes = isFaster || binding_->singleCopy == link::SingleCopy::kAlways;
  return wishes && !allMapped && !work_.scalesInput && maySharePlaces() && isReadable();
}

bool Lane::isReadable() const noexcept {
  const auto own = static_cast<uint32_t>(binding_->schedule->rank);
  const auto lends = [&](Stays where) { return std::ranges::count(binding_->lending, where) != 0; };
  return (!lends(Stays::kInInput) ||
          binding_->readableInput.is(work_.input, work_.layout.inputExtent(own) * work_.elementBytes)) &&
         (!lends(Stays::kInOutput) ||
          binding_->readableOutput.is(work_.output, work_.layout.outputExtent(own) * work_.elementBytes));
}

// Where input and output are the same memory a step may write over what another rank still reads.
bool Lane::liesApart() const noexcept {
  const auto own = static_cast<uint32_t>(binding_->schedule->rank);
  const auto input = reinterpret_cast<uintptr_t>(work_.input), output = reinterpret_cast<uintptr_t>(work_.output);
  return input + work_.layout.inputExtent(own) * work_.elementBytes <= output ||
         output + work_.layout.outputExtent(own) * work_.elementBytes <= input;
}

// Whoever lends so has a window: its peers have it.
void Lane::findPlaces() noexcept {
  if (work_.scalesInput || !maySharePlaces()) return;
  const auto own = static_cast<uint32_t>(binding_->schedule->rank);
  const window::OwnWindow& window = window::OwnWindow::ofProcess();
  places_.input = window.placeOf(work_.input, work_.layout.inputExtent(own) * work_.elementBytes, places_.inputAt);
  places_.output = window.placeOf(work_.output, work_.layout.outputExtent(own) * work_.elementBytes, places_.outputAt);
}

// Each writes over what the other has read, and reads the other's sums: from caches that is slower than slots, which
// lie apart, by half and more between 512 KiB and 4 MiB; beyond it is faster, or slower, as machines differ. By each
// rank's own times: a post says where its payload is.
void Lane::decideOnPlaces() noexcept {
  lends_ = false, startedTicks_ = 0;  // one trial at a time
  mappedTicks_ = readTicks();
  if (!binding_->mappedTrial.lends(lendableBytes_, true)) places_ = {};
}

// Whether the kernel has nothing to read.
bool Lane::lendsAllMapped() const noexcept {
  const auto isThere = [this](Stays where) {
    return where == Stays::kNowhere || (where == Stays::kInInput ? places_.input : places_.output);
  };
  return binding_->allMap && std::ranges::all_of(binding_->lending, isThere);
}

// ---- A step lends --------------------------------------------------------------------------------------------------

// Null: the step fills slots.
void Lane::choosePlaces(const Step& step, size_t round, size_t bytes) noexcept {
  const bool mayLend = lends_ && bytes >= kLeastPieceLent;
  const Stays where = binding_->lending[step_];
  lent_ = mayLend ? placeOf(where, step, round) : nullptr;
  // The input is there from the begin on, the output comes piece by piece, but for what one post is of.
  lentBytes_ = lent_ == nullptr || where != Stays::kInInput
                   ? 0
                   : work_.layout.restFrom(step.segment, round, byInput(step)) * work_.elementBytes;
  sent_ = sendsFromBuffers_ ? placeSent(step, round, bytes) : nullptr;
  held_ = isHeld(binding_->lending[step_]) ? sent_ : nullptr;
  lendsPlace_ = bytes >= kLeastPieceLent && findPlace(binding_->lending[step_], step, round);
}

// Whether it lies elsewhere than in the slot of that link.
bool Lane::needsNoSlot(const Step& step, size_t round, size_t bytes, const link::SendEnd& end) noexcept {
  if (end.driver != nullptr || !(lends_ || places_.input || places_.output)) return false;
  choosePlaces(step, round, bytes);
  return isLentOver(end);
}

// How many rounds of a step one post can be of: where nothing else goes over its links meanwhile, and all of it is
// there. Each hand-over between ranks that share a processor with others costs a turn of these.
void Lane::cover(const Step& step, size_t round, size_t bytes) noexcept {
  const bool isAll = !work_.layout.inputCounts && !work_.layout.outputCounts && fillsNoSlot(step);
  const size_t most = isAll ? binding_->ahead[step_].roundsFrom(round, rounds_) : 1;
  covered_ = 1, coveredBytes_ = bytes;
  for (; covered_ < most; ++covered_) {
    const size_t next = bytesOf(step, round + covered_);
    if (next < kLeastPieceLent) return;
    coveredBytes_ += next;
  }
}

// Whether all that the step posts is read in the input: its receivers need not wait for this rank's own copy of it,
// where there is one to make.
bool Lane::copiesWhatItLends(const Step& step) const noexcept {
  return binding_->lending[step_] == Stays::kInInput && fillsNoSlot(step) && liesApart() &&
         std::ranges::any_of(binding_->schedule->to(step), [](Operand to) { return !to.isLink(); });
}

// All who receive what it posts read it where it lies. What drivers send they send once all of it is posted.
bool Lane::fillsNoSlot(const Step& step) const noexcept {
  return std::ranges::all_of(binding_->schedule->to(step), [this](Operand to) {
    if (!to.isLink()) return true;
    const link::SendEnd& end = *binding_->outs[to.index()];
    return end.driver == nullptr && isLentOver(end);
  });
}

// What the step puts into the own output, of rounds that it has posted.
void Lane::copyCovered(const Step& step, size_t round, size_t end) noexcept {
  if (covered_ > 1) binding_->hasPosted[step_] = end;
  for (; round < end; ++round) execute(step, round, bytesOf(step, round));
}

const std::byte* Lane::placeOf(Stays where, const Step& step, size_t round) const noexcept {
  if (where == Stays::kNowhere) return nullptr;
  const kernels::Piece piece = work_.layout.piece(step.segment, round, byInput(step));
  return where == Stays::kInInput ? work_.input + piece.input * work_.elementBytes
                                  : work_.output + piece.output * work_.elementBytes;
}

// The same in the window.
bool Lane::findPlace(Stays where, const Step& step, size_t round) noexcept {
  if (where == Stays::kNowhere || !(where == Stays::kInInput ? places_.input : places_.output)) return false;
  const kernels::Piece piece = work_.layout.piece(step.segment, round, byInput(step));
  lentPlace_ = where == Stays::kInInput ? places_.inputAt + piece.input * work_.elementBytes
                                        : places_.outputAt + piece.output * work_.elementBytes;
  return true;
}

// What is short costs less to write often than to count.
void Lane::takeShared(const Step& step, size_t bytes) noexcept {
  constexpr size_t kLeast = kMostShortBytes + 1;
  if (bytes < kLeast) return;
  const auto isUnlent = [this](Operand operand) {
    return operand.isLink() && binding_->outs[operand.index()]->goesShared &&
           !isLentOver(*binding_->outs[operand.index()]);
  };
  if (std::ranges::count_if(binding_->schedule->to(step), isUnlent) > 1) shared_ = binding_->sharedSlots->take();
}

void Lane::giveBackShared() noexcept {
  if (shared_ != nullptr) std::exchange(shared_, nullptr)->giveBack();
}

void Lane::post(link::SendEnd& end, uint32_t bytes) noexcept {
  if (goesShared(end)) return end.postSharedQuietly(work_.fingerprint, bytes, *shared_);
  if (isLentMapped(end)) {
    end.lendMappedQuietly(work_.fingerprint, bytes, lentPlace_, coveredBytes_, covered_);
    slotsReadInPlace_ += covered_;
  } else if (const std::byte* const from = placeLentOver(end)) {
    end.lendQuietly(work_.fingerprint, bytes, from, from == lent_ ? std::max(lentBytes_, coveredBytes_) : 0, covered_);
    if (end.driver != nullptr && end.driver->holdsBuffers()) ++slotsReadInPlace_;
  } else {
    return end.postQuietly(work_.fingerprint, bytes);
  }
  (end.driver == nullptr ? owesReturns_ : owesMoves_) = true;
}

// ---- A step reads what was lent ------------------------------------------------------------------------------------

// Whether all that it does is to put what it receives into the output, and perhaps to pass it on.
bool Lane::lands(const Step& step) const noexcept {
  return step.fromCount == 1 && step.span == 1 && (step.flags & schedule::kFinalise) == 0 &&
         std::ranges::count(binding_->schedule->to(step), Operand::output()) == 1;
}

// What has been lent by address is copied: to the output where it only lands there, else to where the step finds it for
// its sum. What has been lent in a window is found.
bool Lane::fetch(const Step& step, size_t round, size_t bytes) noexcept {
  fetched_ = readsMapped_ = false;
  size_t number = 0;
  for (const Operand operand : binding_->schedule->from(step)) {
    ++number;
    if (!operand.isLink()) continue;
    link::RecvEnd& end = *binding_->ins[operand.index()];
    const link::PayloadLocation carried = end.carried();
    const bool isLent = carried == link::PayloadLocation::kAtSender;
    link::Lent lent = isLent ? end.lent() : link::Lent();
    if (isLent && !goesOn(end, lent, bytes)) return refuses(end.peer, kNotHere);
    if (isLent && lent.place.window == 0) {
      if (!(lands(step) ? fetchToOutput(step, round, bytes, end, lent) : fetchApart(end, lent, bytes, number - 1)))
        return false;
      continue;
    }
    binding_->hasRead[step_] = 0;  // what comes in another way is taken as it comes
    if (carried == link::PayloadLocation::kInSlot) [[likely]]
      continue;
    if (carried == link::PayloadLocation::kTakenBack) return refuses(end.peer, kTookBack);
    if (hasLanded(end)) {
      fetched_ = true;
      continue;
    }
    if (!isLent) return refuses(end.peer, kNotHere);
    if (!(lent.place.window == link::kSharedSlots ? findShared(end, lent.place.at, bytes)
                                                  : findMapped(end, lent.place, bytes)))
      return false;
  }
  return true;
}

// Where the payload of this round is, in what may be of several.
bool Lane::goesOn(link::RecvEnd& end, link::Lent& lent, size_t bytes) noexcept {
  if (end.roundsLeft == 0) end.roundsLeft = lent.rounds;
  if (bytes + end.bytesTaken > std::max<uint64_t>(lent.bytes, bytes)) return false;
  lent.place.at += end.bytesTaken;
  lent.bytes -= end.bytesTaken;
  return true;
}

bool Lane::fetchToOutput(const Step& step, size_t round, size_t bytes, link::RecvEnd& end,
                         const link::Lent& lent) noexcept {
  fetched_ = true;
  size_t& hasRead = binding_->hasRead[step_];
  if (hasRead >= bytes) return hasRead -= bytes, true;
  const kernels::Piece piece = work_.layout.piece(step.segment, round, byInput(step));
  const size_t all = fetchable(step, round, bytes, lent.bytes);
  if (!fetchOne(end, work_.output + piece.output * work_.elementBytes, lent.place.at, all)) return false;
  hasRead = all - bytes;
  return true;
}

// The `number`th of the step's sources.
bool Lane::fetchApart(link::RecvEnd& end, const link::Lent& lent, size_t bytes, size_t number) noexcept {
  if (binding_->fetched == nullptr || bytes > binding_->slotBytes) return refuses(end.peer, kNotHere);
  std::byte* const to = binding_->fetched->data() + number * binding_->slotBytes;
  if (!fetchOne(end, to, lent.place.at, bytes)) return false;
  end.mapped = to;
  return readsMapped_ = true;
}

// How much of what the peer lends goes to where it belongs at once: whole pieces of the rounds from this one on.
size_t Lane::fetchable(const Step& step, size_t round, size_t bytes, uint64_t lent) const noexcept {
  constexpr size_t kMost = size_t{512} << 10;  // a core's cache holds it, and what it is copied to
  const Early early = binding_->early[step_];
  if (lent <= bytes || early == Early::kNever || (early == Early::kApart && !liesApart())) return bytes;
  const size_t rest = work_.layout.restFrom(step.segment, round, byInput(step)) * work_.elementBytes;
  const size_t most = std::min<uint64_t>(lent, rest);
  if (most > kMost) return std::max(kMost / bytes, size_t{1}) * bytes;
  return most == rest || most % bytes == 0 ? most : bytes;
}

bool Lane::fetchOne(link::RecvEnd& end, std::byte* to, uint64_t at, size_t bytes) noexcept {
  if (end.memory == nullptr) return refuses(end.peer, kNotHere);
  if (end.memory->read(to, at, bytes)) return true;
  try {
    return refuses(end.peer, end.memory->error());
  } catch (const std::exception&) {  // no memory to say why
    return refuses(end.peer, "its memory cannot be read");
  }
}

bool Lane::findShared(link::RecvEnd& end, uint64_t at, size_t bytes) noexcept {
  constexpr size_t kAll = link::SharedSlots::kMemoryBytes;
  if (end.shared == nullptr || bytes > kAll || at > kAll - bytes) return refuses(end.peer, kNotHere);
  end.mapped = end.shared + at;
  return readsMapped_ = true;
}

bool Lane::findMapped(link::RecvEnd& end, const link::RemoteAddress& lent, size_t bytes) noexcept {
  if (end.window == nullptr || lent.window != link::kWindow) return refuses(end.peer, kNotHere);
  end.mapped = end.window->at(lent.at, bytes);
  if (end.mapped == nullptr) return refuses(end.peer, end.window->fault(lent.at, bytes));
  return readsMapped_ = true;
}

// After it was read: what has been taken back meanwhile may have been something else already.
bool Lane::wasStillLent(const Step& step) noexcept {
  const bool fetched = std::exchange(fetched_, false);
  readsMapped_ = false;
  for (const Operand operand : binding_->schedule->from(step)) {
    if (!operand.isLink()) continue;
    link::RecvEnd& end = *binding_->ins[operand.index()];
    const bool wasMapped = std::exchange(end.mapped, nullptr) != nullptr;
    if (end.driver == nullptr && (fetched || wasMapped) && !end.isStillLent()) return refuses(end.peer, kTookBack);
  }
  return true;
}

bool Lane::refuses(int peer, std::string_view what) noexcept {
  if (failure_.kind != LaneFailure::Kind::kNone) return false;
  failure_.kind = LaneFailure::Kind::kLink;
  failure_.peer = peer;
  setText(failure_.text, what);
  return false;
}

// ---- The end of the call -------------------------------------------------------------------------------------------

// When nobody reads its buffers any more.
bool Lane::isReturned() noexcept {
  for (link::SendEnd* end : binding_->outs) {
    if (end->driver != nullptr || !(end->lends() || end->lendsMapped()) || end->drained()) continue;
    waitingFor_ = end->peer;
    return false;
  }
  waitingFor_ = -1;
  return true;
}

// Once it has.
void Lane::endLending() noexcept {
  const size_t bytes = std::exchange(lendableBytes_, 0);
  if (bytes >= binding_->leastLent && startedTicks_ != 0) binding_->trial.took(readTicks() - startedTicks_, bytes);
  if (const uint64_t since = std::exchange(mappedTicks_, 0); since != 0)
    binding_->mappedTrial.took(readTicks() - since, bytes);
  letGo();
  const uint64_t slots = std::exchange(slotsReadInPlace_, 0);
  if (slots != 0 && binding_->directSlots != nullptr)
    binding_->directSlots->fetch_add(slots, std::memory_order_relaxed);
}

void Lane::takeBack() noexcept {
  stopLanding();
  giveBackShared();
  for (size_t i = 0; (owesReturns_ || owesMoves_) && i < binding_->outs.size(); ++i) {
    link::SendEnd* const end = binding_->outs[i];
    if (end->driver == nullptr)
      end->takeBack();
    else if (end->lends())
      end->moveIntoSlots();
  }
  letGo();
}

}  // namespace tutti::engine

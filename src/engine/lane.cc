#include "engine/lane.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/ticks.h"
#include "kernels/host/write_around.h"

namespace tutti::engine {

using schedule::Operand;
using schedule::Schedule;
using schedule::Stays;
using schedule::Step;

namespace {

// Who only sends, what slots have room for, is done before its peer begins, as programs have come to expect.
bool flowsOneWay(Collective collective) {
  const Collective plain = plainOf(collective);
  return plain == Collective::kSendRecv || plain == Collective::kGather || plain == Collective::kScatter ||
         plain == Collective::kReduce;
}

bool onlyExchanges(Collective collective) {
  const Collective plain = plainOf(collective);
  return plain == Collective::kAllGather || plain == Collective::kAllToAll;
}

// Ranks of a schedule: more of them find in slots what they add up. What the kernel reads for a step takes a slot's
// room for each of its sources.
constexpr int kMostAddedUp = 16;

bool goesWhereItLands(const Step& step) { return (step.flags & (schedule::kDirectWrite | schedule::kLands)) != 0; }

size_t leastLentOf(const Binding& binding, size_t elsewhere) {
  if (!flowsOneWay(binding.schedule->collective)) return elsewhere;
  const link::Fifo& fifo = binding.outs.front()->fifo;
  return size_t{std::min(fifo.depth, slots::kDepth)} * fifo.slotBytes + 1;  // of any number of ranks
}

}  // namespace

size_t Binding::prepare(uint32_t bytesPerSlot) {
  slotBytes = bytesPerSlot;
  const size_t grown = makeRoom();
  early = earlyOf(*schedule);
  hasRead.assign(schedule->steps.size(), 0);
  ahead = postsAheadOf(*schedule);
  hasPosted.assign(schedule->steps.size(), 0);
  again.reserve(*schedule);
  triedShort = false;
  findLast();
  findShared();
  findDrivers();
  findLending();
  return grown;
}

size_t Binding::makeRoom() {
  scratch.resize(size_t{schedule->scratches} * slotBytes);
  size_t widestFrom = 1, widestTo = 1;
  for (const Step& step : schedule->steps) {
    widestFrom = std::max<size_t>(widestFrom, step.fromCount);
    widestTo = std::max<size_t>(widestTo, step.toCount);
  }
  sources.resize(widestFrom);
  destinations.resize(widestTo);
  around = std::make_unique<bool[]>(widestTo);
  stores.assign(schedule->steps.size(), Stores());
  outputStores.assign(schedule->steps.size(), Stores(Stores::Gain::kQuarter));
  if (fetched == nullptr || schedule->size > kMostAddedUp) return 0;
  if (std::ranges::none_of(ins, [](auto* end) { return end->memory != nullptr; })) return 0;
  const size_t before = fetched->size();
  fetched->resize(std::max(before, widestFrom * slotBytes));
  return fetched->size() - before;
}

void Binding::findLast() {
  const auto has = [](auto operands) { return std::ranges::count(operands, Operand::output()) != 0; };
  std::vector<bool> isRead(schedule->segments);
  for (const Step& step : schedule->steps)
    for (uint32_t i = 0; i < step.span && has(schedule->from(step)); ++i)
      isRead[(step.segment + i) % schedule->segments] = true;
  last = std::make_unique<bool[]>(schedule->steps.size());
  std::ranges::transform(schedule->steps, last.get(), [&](const Step& step) {
    const bool isCopy = step.fromCount == 1 && step.span == 1 && (step.flags & schedule::kFinalise) == 0;
    return isCopy && has(schedule->to(step)) && !isRead[step.segment];
  });
}

void Binding::findShared() {
  for (link::SendEnd* end : outs) end->goesShared = sharedSlots != nullptr && end->sharesSlots();
  const auto goesToMany = [&](const Step& step) {
    return slotBytes <= link::SharedSlots::kSlotBytes &&
           std::ranges::count_if(schedule->to(step), [&](Operand operand) {
             return operand.isLink() && outs[operand.index()]->goesShared;
           }) > 1;
  };
  shares = std::make_unique<bool[]>(schedule->steps.size());
  std::ranges::transform(schedule->steps, shares.get(), goesToMany);
}

void Binding::findDrivers() {
  const auto hasDriver = [](auto* end) { return end->driver != nullptr; };
  hasDrivers = std::ranges::any_of(ins, hasDriver) || std::ranges::any_of(outs, hasDriver);
  sendsFromBuffers = singleCopy != link::SingleCopy::kNever &&
                     std::ranges::any_of(outs, [](auto* end) { return end->driver != nullptr && end->lends(); });
  holdsBuffers = sendsFromBuffers && std::ranges::any_of(outs, [](auto* end) {
                   return end->driver != nullptr && end->driver->holdsBuffers();
                 });
  fillsAhead = schedule->size == 2 && !hasDrivers && !outs.empty();
  writesBehind = sendsFromBuffers && !holdsBuffers && mayWriteBehind(*schedule);
}

void Binding::findLending() {
  const bool byKernel = std::ranges::any_of(outs, [](auto* end) { return end->driver == nullptr && end->lends(); });
  const bool onlyLands = byKernel && schedule->size > kMostAddedUp;
  lending.clear();
  for (size_t i = 0; i < schedule->steps.size(); ++i) {
    const Step& step = schedule->steps[i];
    lending.push_back(onlyLands && !goesWhereItLands(step) ? Stays::kNowhere : staysOf(*schedule, step));
  }
  findOverLent();
  const bool isPair = schedule->size == 2, may = singleCopy != link::SingleCopy::kNever;
  const bool mayLend =
      may && byKernel && std::ranges::any_of(lending, [](Stays where) { return where != Stays::kNowhere; });
  const bool mayMap = may && std::ranges::any_of(outs, [](auto* end) { return end->lendsMapped(); });
  allMap = mayMap && std::ranges::all_of(outs, [](auto* end) { return end->driver != nullptr || end->lendsMapped(); });
  trial = LendingTrial(isPair && onlyExchanges(schedule->collective));
  mappedTrial = LendingTrial(true, LendingTrial::Learns::kEachAlone);
  triesMapped = isPair && schedule->collective == Collective::kAllReduce && singleCopy != link::SingleCopy::kAlways &&
                std::ranges::count(lending, Stays::kInOutput) != 0;
  const size_t least = isPair ? LendingTrial::kLeastBytes : LendingTrial::kLeastAmongMany;
  leastLent = mayLend ? leastLentOf(*this, least) : SIZE_MAX;
  const bool inTurns = crowd != nullptr && crowd->takesTurns();
  leastMapped = mayMap ? leastLentOf(*this, inTurns ? kLeastMappedInTurns : kLeastMapped) : SIZE_MAX;
  leastEither = std::min({leastLent, leastMapped, holdsBuffers ? kLeastPieceLent : SIZE_MAX});
}

void Binding::findOverLent() {
  std::vector<bool> isLent(schedule->segments);
  for (size_t i = 0; i < lending.size(); ++i)
    if (lending[i] == Stays::kInInput) isLent[schedule->steps[i].segment] = true;
  overLent = std::make_unique<bool[]>(lending.size());
  std::ranges::transform(schedule->steps, overLent.get(), [&](const Step& step) { return isLent[step.segment]; });
}

void Lane::start(Binding& binding, const LaneWork& work) noexcept {
  binding_ = &binding;
  work_ = work;
  short_ = false;
  binding.triedShort = false;
  iteration_ = 0;
  step_ = 0;
  const size_t longest = work.layout.longestShare();
  rounds_ = work.layout.roundsOf(longest);
  iterations_ = kernels::iterationsOf(rounds_, binding.schedule->maxLag);
  waitingFor_ = -1;
  owesReturns_ = owesMoves_ = false;
  lent_ = sent_ = held_ = nullptr;
  lendsPlace_ = readsMapped_ = false;
  giveBackShared();
  std::ranges::fill(binding.hasRead, 0);
  std::ranges::fill(binding.hasPosted, 0);
  slotsReadInPlace_ = 0;
  landingAt_ = nullptr;
  lendableBytes_ = longest * work.elementBytes;
  outputIsLong_ = work.layout.outputExtent(static_cast<uint32_t>(binding.schedule->rank)) * work.elementBytes >=
                  Stores::kLongOutput;
  places_ = {};
  startedTicks_ = mappedTicks_ = 0;
  if (lendableBytes_ >= binding.leastMapped) findPlaces();
  lends_ = lendableBytes_ >= binding.leastLent && decidesToLend();
  if (binding.triesMapped && (places_.input || places_.output) && !liesApart()) decideOnPlaces();
  const bool mayShare = maySharePlaces(), mayWait = binding.writesBehind && work_.input == work_.output;
  sendsFromBuffers_ =
      binding.sendsFromBuffers && lendableBytes_ >= kLeastPieceLent && !work_.scalesInput && (mayShare || mayWait);
  writesBehind_ = sendsFromBuffers_ && !mayShare;
  if (writesBehind_) firstPosted_ = binding.outs.front()->posted;
  fillsAhead_ = binding.fillsAhead && !lends_ && !places_.input && !places_.output;
  if (binding.holdsBuffers && sendsFromBuffers_) holdBuffers();
}

LaneState Lane::run(bool& moved) noexcept {
  // Once: a step that has posted to some of its links must not do so again.
  if (failure_.kind != LaneFailure::Kind::kNone) [[unlikely]]
    return LaneState::kFailed;
  asked_ = false;
  const LaneState state = short_ ? runShort(moved) : goOn(moved);
  if (state == LaneState::kDone && lendableBytes_ >= binding_->leastEither) [[unlikely]]
    endLending();
  if (owesWakeups_) [[unlikely]]
    settleWakeups();
  return state;
}

void Lane::settleWakeups() noexcept {
  owesWakeups_ = false;
  for (link::RecvEnd* end : binding_->ins) end->wakeups.settle(end->peerBell);
  for (link::SendEnd* end : binding_->outs) end->wakeups.settle(end->peerBell);
}

LaneState Lane::goOn(bool& moved) noexcept {
  const Schedule& schedule = *binding_->schedule;
  const auto stepCount = static_cast<uint32_t>(schedule.steps.size());
  for (; iteration_ < iterations_; ++iteration_, step_ = 0) {
    for (; step_ < stepCount; ++step_) {
      const Step& step = schedule.steps[step_];
      const size_t round = kernels::roundOf(step, iteration_);
      if (round >= rounds_ || round < binding_->hasPosted[step_]) continue;
      const size_t bytes = bytesOf(step, round);
      if (bytes == 0 && !work_.layout.speaks) continue;
      if (!ready(step, round, bytes))
        return failure_.kind == LaneFailure::Kind::kNone ? LaneState::kBlocked : LaneState::kFailed;
      if (!runStep(step, round, bytes)) return LaneState::kFailed;
      moved = true;
      if ((sendsFromBuffers_ || fillsAhead_) && !postAhead(step, round)) return LaneState::kFailed;
      if (binding_->hasDrivers && !push(step)) return LaneState::kFailed;
    }
  }
  if (!tookAll()) return LaneState::kFailed;
  if (binding_->hasDrivers && !driveAll()) return LaneState::kFailed;
  if (owesReturns_ && !isReturned()) return LaneState::kBlocked;
  if (!binding_->hasDrivers) return LaneState::kDone;
  const bool sending = std::any_of(binding_->outs.begin(), binding_->outs.end(),
                                   [](auto* end) { return end->driver && !end->drained(); });
  return sending ? LaneState::kBlocked : LaneState::kDone;
}

// That is ready.
bool Lane::runStep(const Step& step, size_t round, size_t bytes) noexcept {
  if (!matches(step, bytes)) return false;
  if (lends_ || sendsFromBuffers_ || places_.input || places_.output) [[unlikely]]
    choosePlaces(step, round, bytes);
  covered_ = 1;
  if (lent_ != nullptr || lendsPlace_) cover(step, round, bytes);
  if (binding_->shares[step_]) takeShared(step, bytes);
  if (bytes > link::kInlineBytes && !fetch(step, round, bytes)) return false;
  const bool postsFirst = (lent_ != nullptr || lendsPlace_) && copiesWhatItLends(step);
  if (!postsFirst) execute(step, round, bytes);
  if ((fetched_ || readsMapped_) && !wasStillLent(step)) return false;
  finishStep(step, bytes);
  if (!postsFirst && covered_ == 1) return true;
  if (owesWakeups_) settleWakeups();  // what follows may take long
  copyCovered(step, postsFirst ? round : round + 1, round + covered_);
  return true;
}

// As many rounds of the step as all its links have room for, where drivers send all of it from the caller's buffer:
// nothing is copied for it, and the links themselves bound it, as nothing leaves meanwhile. Where two ranks fill each
// other's slots, half of these: who reads what the other one is just writing waits for each line.
bool Lane::postAhead(const Step& step, size_t round) noexcept {
  const auto mayPost = [this](Operand to) {
    if (!to.isLink()) return true;
    link::SendEnd& end = *binding_->outs[to.index()];
    return (fillsAhead_ || (end.driver != nullptr && placeLentOver(end) != nullptr)) && end.hasRoom();
  };
  const size_t most = fillsAhead_ ? binding_->outs.front()->fifo.depth / 2 : Ahead::kAll;
  const size_t end = round + std::min(most, binding_->ahead[step_].roundsFrom(round, rounds_));
  while (++round < end && std::ranges::all_of(binding_->schedule->to(step), mayPost)) {
    const size_t bytes = bytesOf(step, round);
    if (bytes == 0) break;
    if (!runStep(step, round, bytes)) return false;
    binding_->hasPosted[step_] = round + 1;
  }
  return true;
}

size_t Lane::bytesOf(const Step& step, size_t round) const noexcept {
  return kernels::countOf(work_.layout, step, round, byInput(step)) * work_.elementBytes;
}

bool Lane::went(link::Progress how, const link::Driver& driver, int peer) noexcept {
  asked_ = asked_ || driver.asksTheSystem();
  if (how != link::Progress::kFailed) return true;
  if (failure_.kind == LaneFailure::Kind::kNone) {
    failure_.kind = LaneFailure::Kind::kLink;
    failure_.peer = peer;
    failure_.text = link::whyFailed(driver);
  }
  return false;
}

// What is posted and has not left, but over `driven`, which has just had its turn.
bool Lane::pushAll(const link::Driver* driven) noexcept {
  for (link::SendEnd* end : binding_->outs)
    if (end->driver && end->driver != driven && !end->drained() && !went(end->driver->push(), *end->driver, end->peer))
      return false;
  return true;
}

// Who has only sends left takes what peers send meanwhile: they may be waiting for room, and for nothing else.
bool Lane::driveAll() noexcept {
  for (link::SendEnd* end : binding_->outs)
    if (end->driver && !end->drained() && !went(end->driver->drive(), *end->driver, end->peer)) return false;
  return true;
}

// The first operand of the step that keeps it from running: a source that is not posted, a destination without room.
Lane::Lack Lane::lackOf(const Step& step, size_t round, size_t bytes) noexcept {
  int place = 0;
  for (const Operand operand : binding_->schedule->from(step)) {
    ++place;
    if (!operand.isLink()) continue;
    const link::RecvEnd& end = *binding_->ins[operand.index()];
    if (!end.ready()) return {place, end.peer, end.driver, &end};
  }
  for (const Operand operand : binding_->schedule->to(step)) {
    ++place;
    if (!operand.isLink()) continue;
    link::SendEnd& end = *binding_->outs[operand.index()];
    if (!end.hasRoomFor(bytes) && !(end.hasLine() && needsNoSlot(step, round, bytes, end)))
      return {place, end.peer, end.driver, nullptr};
  }
  if (writesBehind_ && goesOverUnsent(step, round, bytes)) {
    const link::SendEnd& end = *binding_->outs.front();
    return {place + 1, end.peer, end.driver, nullptr};
  }
  return {};
}

// All sources posted and all destinations free? While one is not, the network link that it waits for is driven, and so
// is every one that still has something to send, whatever is waited for: schedules are proved to end over links that
// deliver what was posted without anyone's help (docs/decisions/0015), and the rank that this one waits for may be
// waiting for just that. Another look follows at once.
bool Lane::ready(const Step& step, size_t round, size_t bytes) noexcept {
  for (Lack lack = lackOf(step, round, bytes); lack.place != 0;) {
    waitingFor_ = lack.peer;
    if (!binding_->hasDrivers) return false;
    if (lack.driver && !driveFor(lack, step, round, bytes)) return false;
    if (!pushAll(lack.driver)) return false;
    const Lack next = lackOf(step, round, bytes);
    if (next.place == lack.place) return false;
    lack = next;
  }
  return true;
}

bool Lane::matches(const Step& step, size_t bytes) noexcept {
  for (const Operand operand : binding_->schedule->from(step)) {
    if (!operand.isLink()) continue;
    const link::RecvEnd& end = *binding_->ins[operand.index()];
    const link::Said said = end.said();
    if (said.fingerprint == work_.fingerprint && (said.bytes == bytes || end.roundsLeft != 0)) [[likely]]
      continue;
    differs(end.peer, said, bytes);
    return false;
  }
  return true;
}

void Lane::differs(int peer, const link::Said& said, size_t expected) noexcept {
  const bool same = said.fingerprint == work_.fingerprint;
  failure_.kind = same ? LaneFailure::Kind::kBytes : LaneFailure::Kind::kMismatch;
  failure_.peer = peer;
  failure_.theirs = said.fingerprint;
  failure_.bytes = said.bytes;
  failure_.expected = expected;
}

// Where each pair of ranks has a count of its own, a part that one sends and the other does not expect meets no step
// that would look at it. What has come of it by now is found here, what comes later by whoever uses the link next.
bool Lane::tookAll() noexcept {
  if (work_.layout.inputCounts == nullptr && work_.layout.outputCounts == nullptr) return true;
  for (const link::RecvEnd* end : binding_->ins) {
    if (!end->ready()) continue;
    const link::Said said = end->said();
    if (static_cast<int32_t>(said.fingerprint.operation - work_.fingerprint.operation) > 0) continue;
    differs(end->peer, said, 0);
    return false;
  }
  return true;
}

void Lane::execute(const Step& step, size_t round, size_t bytes) noexcept {
  if (bytes == 0) return;
  const bool mayGoAround = bytes >= Stores::kLeastBytes && kernels::kGoesAround;
  const bool isRead = mayGoAround && putsWherePeersRead(step);
  const size_t filled = mayGoAround ? bytes * (mappedSlots(step) + (isRead ? 1 : 0)) : 0;
  const bool leaves = mayGoAround && outputIsLong_ && !isRead && leavesInOutput(step);
  if (filled == 0 && !leaves) return combineRuns(step, round, bytes, {});
  Stores& stores = binding_->stores[step_];
  Stores& outputStores = binding_->outputStores[step_];
  // One of the two is tried at a time.
  const Stores::Choice slots = filled == 0 ? Stores::Choice() : stores.next();
  const Stores::Choice output = !leaves ? Stores::Choice() : slots.isTry ? outputStores.usual() : outputStores.next();
  const uint64_t begun = readTicks();
  combineRuns(step, round, bytes, {slots.around, isRead ? slots.around : output.around});
  const uint64_t ticks = readTicks() - begun;
  if (filled != 0 && !output.isTry) stores.took(slots.around, filled, ticks);
  if (leaves && !slots.isTry) outputStores.took(output.around, bytes, ticks);
}

// Whether what the step copies into the output has been fetched there, or is there, as the input is in place.
bool Lane::isThere(const Step& step) const noexcept {
  const auto from = binding_->schedule->from(step);
  return fetched_ || (from.size() == 1 && from[0] == Operand::input() && !liesApart());
}

// Whether this rank is done with what the step copies into its output, and no peer reads it there.
bool Lane::leavesInOutput(const Step& step) const noexcept {
  const bool isLent = lent_ != nullptr || lendsPlace_ || sent_ != nullptr;
  return binding_->last[step_] && !isThere(step) && !(isLent && binding_->lending[step_] == Stays::kInOutput);
}

// Whether peers read where the step puts something into the output, then or before: it is as a slot of theirs.
bool Lane::putsWherePeersRead(const Step& step) const noexcept {
  const auto to = binding_->schedule->to(step);
  if (isThere(step) || std::ranges::count(to, Operand::output()) == 0) return false;
  if (!outputIsLong_ && binding_->overLent[step_] && places_.input && !liesApart()) return true;
  const auto isRead = [this](Operand operand) {
    return operand.isLink() && binding_->outs[operand.index()]->driver == nullptr &&
           isLentOver(*binding_->outs[operand.index()]);
  };
  return binding_->lending[step_] == Stays::kInOutput && std::ranges::any_of(to, isRead);
}

// What a driver sends is read again by this core.
bool Lane::isMapped(Operand operand) const noexcept {
  if (!operand.isLink()) return false;
  const link::SendEnd& end = *binding_->outs[operand.index()];
  return end.driver == nullptr && !isLentOver(end);
}

size_t Lane::mappedSlots(const Step& step) const noexcept {
  const auto isOwn = [this](Operand operand) {
    return isMapped(operand) && !goesShared(*binding_->outs[operand.index()]);
  };
  return static_cast<size_t>(std::ranges::count_if(binding_->schedule->to(step), isOwn)) + (shared_ != nullptr ? 1 : 0);
}

void Lane::combineRuns(const Step& step, size_t round, size_t bytes, Around around) noexcept {
  skipped_ = kernels::skippedOf(work_.layout, step, round, byInput(step)) * work_.elementBytes;
  kernels::forEachRun(work_.layout, step, round, byInput(step), [&](const kernels::Piece& run, size_t before) {
    combineRun(step, run, before * work_.elementBytes, bytes, around);
  });
}

void Lane::combineRun(const Step& step, const kernels::Piece& run, size_t slotOffset, size_t bytes,
                      Around around) noexcept {
  const auto from = binding_->schedule->from(step);
  const auto to = binding_->schedule->to(step);
  std::byte* const input = const_cast<std::byte*>(work_.input) + run.input * work_.elementBytes;
  std::byte* const output = work_.output + run.output * work_.elementBytes;
  const auto scratch = [&](Operand operand) {
    return binding_->scratch.data() + size_t(operand.index()) * binding_->slotBytes + slotOffset;
  };
  int scaled = -1;
  for (size_t i = 0; i < from.size(); ++i) {
    const std::byte*& source = binding_->sources[i];
    switch (from[i].kind()) {
      case Operand::Kind::kInput:
        source = input;
        if (work_.scalesInput) scaled = static_cast<int>(i);
        break;
      case Operand::Kind::kOutput:
        source = output;
        break;
      case Operand::Kind::kScratch:
        source = scratch(from[i]) + skipped_;
        break;
      case Operand::Kind::kLink:
        source = fetched_ ? output : payloadOf(*binding_->ins[from[i].index()], bytes) + slotOffset;
        break;
    }
  }
  int places = 0;
  bool isShared = false;
  for (const Operand operand : to) {
    if (operand.isLink() && isLentOver(*binding_->outs[operand.index()])) continue;
    std::byte*& destination = binding_->destinations[static_cast<size_t>(places)];
    if (!operand.isLink()) {
      destination = operand.kind() == Operand::Kind::kScratch ? scratch(operand) : output;
      if (fetched_ && destination == output) continue;
    } else if (link::SendEnd& end = *binding_->outs[operand.index()]; goesShared(end)) {
      if (std::exchange(isShared, true)) continue;
      destination = shared_->memory() + slotOffset;
    } else {
      destination = end.place(bytes) + slotOffset;
    }
    binding_->around[static_cast<size_t>(places++)] =
        operand.isLink() ? around.slots && isMapped(operand) : around.output && operand == Operand::output();
  }
  if (places == 0) return;
  kernels::Arithmetic arithmetic = work_.arithmetic;
  if (!(step.flags & schedule::kFinalise)) arithmetic.divisor = 1;
  kernels::combine(arithmetic, binding_->destinations.data(), places, binding_->sources.data(), step.fromCount,
                   run.count, scaled, around.slots || around.output ? binding_->around.get() : nullptr);
}

void Lane::finishStep(const Step& step, size_t bytes) noexcept {
  landingAt_ = nullptr;
  for (const Operand operand : binding_->schedule->from(step)) {
    if (!operand.isLink()) continue;
    link::RecvEnd& end = *binding_->ins[operand.index()];
    if (end.roundsLeft > 1) {
      --end.roundsLeft, end.bytesTaken += bytes;
      continue;
    }
    end.roundsLeft = end.bytesTaken = 0;
    end.releaseQuietly();
    owesWakeups_ |= end.wakeups.owe(end.peerBell, end.fifo.depth);
  }
  for (const Operand operand : binding_->schedule->to(step)) {
    if (!operand.isLink()) continue;
    link::SendEnd& end = *binding_->outs[operand.index()];
    post(end, static_cast<uint32_t>(bytes));
    owesWakeups_ |= end.wakeups.owe(end.peerBell, end.fifo.depth);
  }
  giveBackShared();
}

// What it has posted.
bool Lane::push(const Step& step) noexcept {
  for (const Operand operand : binding_->schedule->to(step)) {
    if (!operand.isLink()) continue;
    link::SendEnd& end = *binding_->outs[operand.index()];
    if (end.driver && !went(end.driver->push(), *end.driver, end.peer)) return false;
  }
  return true;
}

}  // namespace tutti::engine

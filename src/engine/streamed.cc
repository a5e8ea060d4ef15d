#include "engine/streamed.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "base/error.h"

namespace tutti::engine {

using schedule::Operand;
using schedule::Step;

namespace {

uint64_t mixed(uint64_t x) noexcept {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 29)) * 0xd6e8feb86659fd93;
  return x ^ (x >> 32);
}

}  // namespace

// The number of the operation is no part of it: that is one when a graph is captured and another when it is replayed,
// and ranks need not capture the same calls.
uint64_t tagOf(const link::Fingerprint& fingerprint, uint64_t bytes) noexcept {
  link::Fingerprint unnumbered = fingerprint;
  unnumbered.operation = 0;
  const auto [first, second] = unnumbered.words();
  const uint64_t tag = mixed(mixed(mixed(first) ^ second) ^ bytes);
  return tag != 0 ? tag : 1;
}

link::Fingerprint fingerprintOf(uint64_t first, uint64_t second) noexcept {
  return std::bit_cast<link::Fingerprint>(link::Fingerprint::Words{first, second});
}

// Acquire: pairs with the stream's write; the place had been there before.
uint64_t StreamCursor::place() const noexcept {
  return std::atomic_ref(const_cast<uint64_t&>(position)).load(std::memory_order_acquire) & ~kLookedAt;
}

// Relaxed: what the stream has written at its place is read by whoever asked place() for it.
bool StreamCursor::stands() noexcept {
  const std::atomic_ref word(position);
  uint64_t now = word.load(std::memory_order_relaxed);
  if (now == 0 || (now & kLookedAt) != 0) return now != 0;
  word.compare_exchange_strong(now, now | kLookedAt, std::memory_order_relaxed);
  return false;
}

uint64_t WaitJournal::end() const {
  std::lock_guard lock(mutex_);
  return first_ + begins_.size() + 1;  // a trail without places has a position of its own, too
}

uint64_t WaitJournal::addPlace() {
  std::lock_guard lock(mutex_);
  begins_.push_back(awaited_.size());
  return first_ + begins_.size() - 1;
}

void WaitJournal::add(const Awaited& awaited) {
  std::lock_guard lock(mutex_);
  awaited_.push_back(awaited);
}

std::vector<Awaited> WaitJournal::at(uint64_t position) const {
  std::lock_guard lock(mutex_);
  const uint64_t place = position - first_;
  if (position < first_ || place >= begins_.size()) return {};
  const size_t begin = begins_[place], end = place + 1 < begins_.size() ? begins_[place + 1] : awaited_.size();
  return {awaited_.begin() + static_cast<std::ptrdiff_t>(begin), awaited_.begin() + static_cast<std::ptrdiff_t>(end)};
}

void StreamedQueue::arrive() { write(&cursor_.position, journal_->addPlace()); }

void StreamedQueue::await(const Awaited& awaited) {
  pending_.push_back({device::WordOp::Kind::kWait, awaited.word, awaited.value});
  journal_->add(awaited);
}

device::SideQueue& StreamedQueue::queue() {
  if (!pending_.empty()) queue_.words(pending_);
  pending_.clear();
  return queue_;
}

void StreamedQueue::end() {
  write(&cursor_.position, 0);
  if (!journal_->ofGraph()) write(&cursor_.ended, journal_->end());
  queue();
}

// Relaxed: only how far it is counts.
uint64_t StreamedQueue::ahead() const {
  if (journal_->ofGraph()) return 0;
  const uint64_t place = cursor_.place();
  const bool known = place != 0 && place < WaitJournal::kOfGraphs;
  return journal_->end() - (known ? place : std::atomic_ref(cursor_.ended).load(std::memory_order_relaxed));
}

StreamedLane::StreamedLane(StreamedWork work)
    : work_(std::move(work)),
      rounds_(work_.work.layout.rounds()),
      iterations_(kernels::iterationsOf(rounds_, work_.schedule->maxLag)),
      passedIn_(work_.ins.size()),
      passedOut_(work_.outs.size()) {}

StreamedLane::Slot StreamedLane::slotOf(const std::vector<StreamedEnd>& ends, const std::vector<uint64_t>& passed,
                                        Operand operand) noexcept {
  const auto link = static_cast<size_t>(operand.index());
  return {&ends[link], static_cast<uint32_t>(passed[link] % ends[link].depth)};
}

// In the order and with the lag of a host lane (engine/lane.cc).
void StreamedLane::queueIteration(size_t iteration, StreamedQueue& queue) {
  for (const Step& step : work_.schedule->steps) {
    const size_t round = kernels::roundOf(step, iteration);
    if (round < rounds_) queueStep(step, round, queue);
  }
}

void StreamedLane::queueStep(const Step& step, size_t round, StreamedQueue& queue) {
  const kernels::Layout& layout = work_.work.layout;
  const bool byInput = kernels::goesByInput(layout, work_.schedule->operands.data(), step);
  if (kernels::countOf(layout, step, round, byInput) == 0 && (round > 0 || !layout.speaks)) return;
  const uint64_t bytes = bytesOf(step, byInput);
  prepare(step, bytes, queue);
  skipped_ = kernels::skippedOf(layout, step, round, byInput) * work_.work.elementBytes;
  kernels::forEachRun(layout, step, round, byInput, [&](const kernels::Piece& run, size_t before) {
    moveRun(step, run, before * work_.work.elementBytes, queue);
  });
  settle(step, bytes, queue);
}

// In all rounds.
uint64_t StreamedLane::bytesOf(const Step& step, bool byInput) const noexcept {
  const kernels::Layout& layout = work_.work.layout;
  uint64_t count = 0;
  uint32_t segment = step.segment;
  for (uint32_t i = 0; i < step.span; ++i) {
    count += layout.shareCount(segment, byInput);
    if (++segment == layout.segments) segment = 0;
  }
  return count * work_.work.elementBytes;
}

void StreamedLane::prepare(const Step& step, uint64_t bytes, StreamedQueue& queue) const {
  const schedule::Schedule& schedule = *work_.schedule;
  const link::Fingerprint& mine = work_.work.fingerprint;
  const auto isLink = [](Operand operand) { return operand.isLink(); };
  if (std::ranges::none_of(schedule.from(step), isLink) && std::ranges::none_of(schedule.to(step), isLink)) return;
  queue.arrive();
  for (const Operand operand : schedule.from(step)) {
    if (!operand.isLink()) continue;
    SlotFlag& mark = source(operand).mark();
    queue.await({&mark.full, tagOf(mine, bytes), source(operand).end->peer, &mark, bytes, mine});
  }
  for (const Operand operand : schedule.to(step))
    if (operand.isLink())
      queue.await({destination(operand).taken(), 0, destination(operand).end->peer, nullptr, bytes, mine});
  // The waits are over: a slot that is given back below may be filled anew while this step is still under way, and
  // whoever looks must not take that for what was waited for.
  queue.arrive();
  for (const Operand operand : schedule.from(step))
    if (operand.isLink()) queue.write(&source(operand).mark().full, 0);
  for (const Operand operand : schedule.to(step))
    if (operand.isLink()) queue.write(destination(operand).taken(), 1);
}

void StreamedLane::settle(const Step& step, uint64_t bytes, StreamedQueue& queue) {
  const schedule::Schedule& schedule = *work_.schedule;
  const link::Fingerprint& mine = work_.work.fingerprint;
  for (const Operand operand : schedule.from(step)) {
    if (!operand.isLink()) continue;
    queue.write(source(operand).taken(), 0);
    ++passedIn_[static_cast<size_t>(operand.index())];
  }
  for (const Operand operand : schedule.to(step)) {
    if (!operand.isLink()) continue;
    SlotFlag& mark = destination(operand).mark();
    queue.write(&mark.first, mine.words()[0]);
    queue.write(&mark.second, mine.words()[1]);
    queue.write(&mark.bytes, bytes);
    queue.write(&mark.full, tagOf(mine, bytes));
    ++passedOut_[static_cast<size_t>(operand.index())];
  }
}

std::byte* StreamedLane::placeOf(Operand operand, bool isSource, const kernels::Piece& run, size_t slotOffset) const {
  const LaneWork& work = work_.work;
  switch (operand.kind()) {
    case Operand::Kind::kInput:
      return const_cast<std::byte*>(work.input) + run.input * work.elementBytes;
    case Operand::Kind::kOutput:
      return work.output + run.output * work.elementBytes;
    case Operand::Kind::kScratch:
      return work_.scratch + static_cast<size_t>(operand.index()) * work_.scratchBytes + slotOffset +
             (isSource ? skipped_ : 0);
    default:
      return (isSource ? source(operand) : destination(operand)).data() + slotOffset;
  }
}

device::Fold StreamedLane::foldOf(const Step& step, const kernels::Piece& run, size_t slotOffset) const {
  const auto from = work_.schedule->from(step), to = work_.schedule->to(step);
  if (from.size() > device::kMostFolded || to.size() > device::kMostFolded)
    throw Error(ErrorCode::kInternal, "a step has more operands than the reduction of a stream takes");
  device::Fold fold;
  for (const Operand operand : from) {
    if (operand == Operand::input() && work_.work.scalesInput) fold.scaledSource = static_cast<int>(fold.fromCount);
    fold.from[fold.fromCount++] = placeOf(operand, true, run, slotOffset);
  }
  for (const Operand operand : to) fold.to[fold.toCount++] = placeOf(operand, false, run, slotOffset);
  fold.bytes = static_cast<uint32_t>(run.count * work_.work.elementBytes);
  fold.arithmetic = work_.work.arithmetic;
  fold.factorAt = work_.factorAt;
  if (!(step.flags & schedule::kFinalise)) fold.arithmetic.divisor = 1;
  return fold;
}

void StreamedLane::moveRun(const Step& step, const kernels::Piece& run, size_t slotOffset, StreamedQueue& queue) const {
  device::SideQueue& stream = queue.queue();
  const device::Fold fold = foldOf(step, run, slotOffset);
  if (fold.fromCount > 1 || fold.scaledSource >= 0 || fold.arithmetic.divisor > 1) return stream.fold(fold);
  for (uint32_t i = 0; i < fold.toCount; ++i)
    if (fold.to[i] != fold.from[0]) stream.copy(fold.to[i], fold.from[0], fold.bytes);
}

}  // namespace tutti::engine

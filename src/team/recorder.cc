#include "team/recorder.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace tutti::comm {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// Entry::where: 7 bits of line, 1 of blocking, 1 of onlyReadies, 7 of nothing, 24 of peer + 1, 24 of waitingFor + 1.
constexpr uint64_t kRankMask = (1 << 24) - 1;
constexpr uint64_t kLineMask = 0x7f, kBlocking = 0x80, kOnlyReadies = 0x100;
constexpr int kPeerShift = 16, kWaitingShift = 40;

constexpr uint64_t packRank(int rank) noexcept { return static_cast<uint64_t>(rank + 1) & kRankMask; }
constexpr int unpackRank(uint64_t where, int shift) noexcept {
  return static_cast<int>(where >> shift & kRankMask) - 1;
}

bool isStuck(const CallRecord& record) noexcept {
  return record.blocking && record.state != CallState::kDone && record.state != CallState::kFailed;
}

}  // namespace

CallerId thisCaller() noexcept { return static_cast<CallerId>(::pthread_self()); }

const char* nameOf(CallState state) noexcept {
  constexpr const char* kNames[] = {"queued", "connecting", "running", "done", "failed"};
  return kNames[static_cast<size_t>(state)];
}

CallLine lineOf(const Call& call) noexcept {
  if (call.collective != Collective::kSendRecv) return CallLine::kCollective;
  return call.sends ? CallLine::kSend : CallLine::kReceive;
}

CallLine counterpartOf(CallLine line) noexcept {
  if (line == CallLine::kCollective) return line;
  return line == CallLine::kSend ? CallLine::kReceive : CallLine::kSend;
}

void Recorder::expect(int self, int ranks) {
  self_.store(self, kRelaxed);
  caller_.store(thisCaller(), kRelaxed);
  messages_ = std::make_unique<Latest[]>(2 * static_cast<size_t>(ranks));
  waitedNs_ = std::make_unique<std::atomic<uint64_t>[]>(static_cast<size_t>(ranks));
  ranks_.store(ranks, std::memory_order_release);  // pairs with latestOf()
}

Recorder::Latest* Recorder::latestOf(CallLine line, int peer) const noexcept {
  if (line == CallLine::kCollective) return &collectives_;
  const int ranks = ranks_.load(std::memory_order_acquire);
  if (peer < 0 || peer >= ranks) return nullptr;
  return &messages_[static_cast<size_t>(line == CallLine::kSend ? peer : ranks + peer)];
}

Recorder::Token Recorder::begin(const Call& call, const link::Fingerprint& fingerprint, bool blocking, uint64_t now,
                                CallState state) noexcept {
  const CallLine line = lineOf(call);
  const int peer = line == CallLine::kCollective ? -1 : call.root;
  const Token order = begun_.load(kRelaxed);
  Entry& entry = entryOf(order);
  const auto words = fingerprint.words();
  entry.mark.store(~uint64_t{0}, kRelaxed);
  // Release: pairs with the acquire in read(); whoever sees a new word below sees that the old mark is gone.
  entry.first.store(words[0], std::memory_order_release);
  entry.second.store(words[1], std::memory_order_release);
  const uint64_t how = (blocking ? kBlocking : 0) | (call.onlyReadies ? kOnlyReadies : 0);
  entry.where.store(static_cast<uint64_t>(line) | how | packRank(peer) << kPeerShift, std::memory_order_release);
  entry.rounds.store(0, std::memory_order_release);
  entry.queued.store(now, std::memory_order_release);
  entry.ended.store(0, std::memory_order_release);
  entry.tag.store(call.tag, std::memory_order_release);
  // Release: pairs with the acquire in read(); the words above belong to this mark.
  entry.mark.store(order << 8 | static_cast<uint64_t>(state), std::memory_order_release);
  begun_.store(order + 1, std::memory_order_release);
  caller_.store(thisCaller(), kRelaxed);
  if (countsArePrivate(call.collective)) keepCounts(call, fingerprint.operation);
  if (Latest* latest = latestOf(line, peer)) latest->store(fingerprint.operation + uint64_t{1}, kRelaxed);
  return order;
}

void Recorder::keepCounts(const Call& call, uint32_t number) noexcept {
  PairedCall kept{number, call};
  std::lock_guard lock(pairedMutex_);
  std::swap(paired_[pairedNext_++ % kPaired], kept);
}

std::optional<Recorder::PairCounts> Recorder::countsWith(int peer, uint32_t number) const {
  std::lock_guard lock(pairedMutex_);
  const auto kept = std::ranges::find_if(
      paired_, [number](const PairedCall& one) { return one.call.tables && one.number == number; });
  if (kept == paired_.end()) return std::nullopt;
  return kept->call.countsWith(self_.load(kRelaxed), peer);
}

bool Recorder::owns(const Entry& entry, Token call) const noexcept { return entry.mark.load(kRelaxed) >> 8 == call; }

void Recorder::started(Token call, const link::Fingerprint& planned) noexcept {
  Entry& entry = entryOf(call);
  if (!owns(entry, call)) return;
  const auto words = planned.words();
  entry.first.store(words[0], kRelaxed);
  entry.second.store(words[1], kRelaxed);
  moved(call, CallState::kConnecting);
}

void Recorder::progressed(Token call, int waitingFor, uint64_t roundsDone, uint64_t rounds) noexcept {
  Entry& entry = entryOf(call);
  if (!owns(entry, call)) return;
  constexpr uint64_t kMost = ~uint32_t{0};
  entry.rounds.store(std::min(roundsDone, kMost) << 32 | std::min(rounds, kMost), kRelaxed);
  const uint64_t rest = entry.where.load(kRelaxed) & ~(kRankMask << kWaitingShift);
  entry.where.store(rest | packRank(waitingFor) << kWaitingShift, kRelaxed);
}

void Recorder::moved(Token call, CallState state) noexcept {
  Entry& entry = entryOf(call);
  if (!owns(entry, call)) return;
  // A later call can only take the entry between the look and this store when 256 calls were made in between: then one
  // line of the record is wrong, which a compare-and-swap on every call would be too high a price for.
  entry.mark.store(call << 8 | static_cast<uint64_t>(state), std::memory_order_release);
}

void Recorder::ended(Token call, CallState how, uint64_t now) noexcept {
  Entry& entry = entryOf(call);
  if (owns(entry, call)) entry.ended.store(now, kRelaxed);
  moved(call, how);
}

// Collectives end one after the other: whoever ends one alone adds to their sums.
void Recorder::completed(const Call& call, uint64_t ticks) noexcept {
  const uint64_t bytes = call.messageBytes();
  if (call.collective != Collective::kSendRecv) {
    ofCollectives_.bytes.store(ofCollectives_.bytes.load(kRelaxed) + bytes, kRelaxed);
    ofCollectives_.ticks.store(ofCollectives_.ticks.load(kRelaxed) + ticks, kRelaxed);
  } else {
    ofMessages_.bytes.fetch_add(bytes, kRelaxed);
    ofMessages_.ticks.fetch_add(ticks, kRelaxed);
  }
}

void Recorder::waited(int peer, uint64_t ticks) noexcept {
  if (peer >= 0 && peer < ranks_.load(std::memory_order_acquire))
    waitedNs_[static_cast<size_t>(peer)].fetch_add(timeline_.nanoseconds(ticks), kRelaxed);
}

Recorder::Totals Recorder::totals() noexcept {
  const std::lock_guard lock(toldMutex_);
  const uint64_t ticks = ofCollectives_.ticks.load(kRelaxed) + ofMessages_.ticks.load(kRelaxed);
  toldNs_ += timeline_.nanoseconds(ticks - toldTicks_);
  toldTicks_ = ticks;
  return {ofCollectives_.bytes.load(kRelaxed) + ofMessages_.bytes.load(kRelaxed), toldNs_};
}

uint64_t Recorder::waitedNs(int peer) const noexcept {
  if (peer < 0 || peer >= ranks_.load(std::memory_order_acquire)) return 0;
  return waitedNs_[static_cast<size_t>(peer)].load(kRelaxed);
}

std::optional<CallRecord> Recorder::read(uint64_t order) const {
  const Entry& entry = entries_[order % kEntries];
  // Acquire: pairs with the last store of begin().
  const uint64_t mark = entry.mark.load(std::memory_order_acquire);
  if (mark >> 8 != order) return std::nullopt;
  CallRecord record;
  record.order = order;
  record.state = static_cast<CallState>(mark & 0xff);
  const auto load = [](const std::atomic<uint64_t>& word) { return word.load(std::memory_order_acquire); };
  record.fingerprint =
      std::bit_cast<link::Fingerprint>(link::Fingerprint::Words{load(entry.first), load(entry.second)});
  const uint64_t where = load(entry.where), rounds = load(entry.rounds);
  record.line = static_cast<CallLine>(where & kLineMask);
  record.blocking = (where & kBlocking) != 0;
  record.onlyReadies = (where & kOnlyReadies) != 0;
  if (record.fingerprint.algorithm != 0)
    record.algorithm = static_cast<schedule::Algorithm>(record.fingerprint.algorithm - 1);
  record.peer = unpackRank(where, kPeerShift);
  record.waitingFor = unpackRank(where, kWaitingShift);
  record.roundsDone = static_cast<uint32_t>(rounds >> 32);
  record.rounds = static_cast<uint32_t>(rounds);
  record.queuedTicks = load(entry.queued);
  record.endedTicks = load(entry.ended);
  record.tag = load(entry.tag);
  if (entry.mark.load(kRelaxed) >> 8 != order) return std::nullopt;
  return record;
}

std::vector<CallRecord> Recorder::records() const {
  const uint64_t end = begun_.load(std::memory_order_acquire);
  std::vector<CallRecord> all;
  for (uint64_t order = end < kEntries ? 0 : end - kEntries; order < end; ++order)
    if (auto record = read(order)) all.push_back(*record);
  return all;
}

template <class Match>
std::optional<CallRecord> Recorder::findLast(Match match) const {
  const uint64_t end = begun_.load(std::memory_order_acquire);
  for (uint64_t order = end; order-- > 0 && end - order <= kEntries;)
    if (auto record = read(order); record && match(*record)) return record;
  return std::nullopt;
}

std::optional<CallRecord> Recorder::find(CallLine line, int peer, uint32_t number) const {
  return findLast([&](const CallRecord& record) {
    return record.line == line && record.peer == peer && record.fingerprint.operation == number;
  });
}

std::optional<CallRecord> Recorder::last(CallLine line, int peer) const {
  return findLast([line, peer](const CallRecord& record) { return record.line == line && record.peer == peer; });
}

std::optional<uint64_t> Recorder::tagOf(CallLine line, int peer, uint32_t number) const {
  const auto found = find(line, peer, number);
  return found ? std::optional(found->tag) : std::nullopt;
}

bool Recorder::begun(CallLine line, int peer, uint32_t number) const noexcept {
  const Latest* latest = latestOf(line, peer);
  const uint64_t made = latest == nullptr ? 0 : latest->load(kRelaxed);
  // Numbers wrap: what is at most half their range behind the latest is not ahead of it.
  return made != 0 && static_cast<int32_t>(static_cast<uint32_t>(made - 1) - number) >= 0;
}

std::optional<CallRecord> Recorder::stuck() const {
  return findLast([](const CallRecord& record) { return isStuck(record) && record.waitingFor >= 0; });
}

bool Recorder::busy() const noexcept {
  return makings_.load() > 0 || std::ranges::any_of(entries_, [](const Entry& entry) {
           const uint64_t state = entry.mark.load(kRelaxed) & 0xff;  // an entry without a call is beyond them
           return state < static_cast<uint64_t>(CallState::kDone);
         });
}

std::optional<CallRecord> Recorder::stuckOn(int rank) const {
  return findLast([rank](const CallRecord& record) { return isStuck(record) && record.waitingFor == rank; });
}

}  // namespace tutti::comm

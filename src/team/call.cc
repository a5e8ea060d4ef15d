#include "team/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/cut.h"
#include "schedule/algorithm.h"

namespace tutti::comm {

// Elements that every rank knows alike: of the message, of one rank's part, or of all parts where these differ.
size_t Call::sharedCount() const noexcept {
  if (!tables) return count;
  return countsArePrivate(collective) ? 0 : countOfTables();
}

size_t Call::countOfTables() const noexcept {
  return std::accumulate(tables->outputCounts.begin(), tables->outputCounts.end(), size_t{0});
}

bool Call::isOfNothing() const noexcept { return sharedCount() == 0 && !countsArePrivate(collective); }

std::optional<Call::PairCounts> Call::countsWith(int self, int peer) const noexcept {
  const auto at = static_cast<size_t>(peer), own = static_cast<size_t>(self);
  if (!tables || !countsArePrivate(collective) || peer < 0 || at >= tables->outputCounts.size()) return std::nullopt;
  if (collective == Collective::kAllToAllV) return PairCounts{tables->inputCounts[at], tables->outputCounts[at]};
  if (self != root && peer != root) return PairCounts{};
  const uint64_t part = tables->outputCounts[self == root ? at : own];
  return (collective == Collective::kScatterV) == (self == root) ? PairCounts{part, 0} : PairCounts{0, part};
}

size_t Call::planBytes(int ranks) const noexcept {
  return sharedCount() / (tables ? static_cast<size_t>(ranks) : 1) * sizeOf(type);
}

// Counts that every rank knows alike are compared as a whole: where sums are equal, parts may differ. A digest is what
// the slot has room for. Of tables with one sum, one pair in 65,536 has one digest; that ends as kBytes at the first
// slot whose size the two ends see differently. Only where, besides, every slot that they exchange has the size that
// the other expects next, as when a part moves to a neighbour that had none, are parts taken for each other
// (docs/failures.md, "Limits").
uint16_t Call::countsDigest() const noexcept {
  if (!tables || countsArePrivate(collective)) return 0;
  uint64_t digest = 0;
  for (const size_t part : tables->outputCounts) digest = (digest ^ part) * 0x9e3779b97f4a7c15 + (digest >> 29);
  return static_cast<uint16_t>(digest >> 48);
}

link::Fingerprint Call::fingerprint(uint64_t number) const noexcept {
  static_assert(link::Fingerprint{.count = kMostElements}.count == kMostElements);
  link::Fingerprint mark;
  mark.count = sharedCount();
  mark.operation = static_cast<uint32_t>(number);
  mark.root = hasRoot(collective) ? static_cast<uint16_t>(root) : countsDigest();
  mark.kindAndType = static_cast<uint8_t>(static_cast<int>(collective) << 4 | static_cast<int>(type));
  mark.op = reduces(collective) ? static_cast<uint8_t>(op) : 0;
  return mark;
}

namespace {

// Mixed into what no plan is looked up by; 0 for no tag alone, so that a call without one never looks like one that
// has.
uint16_t tagDigest(uint64_t tag) noexcept {
  if (tag == 0) return 0;
  const uint64_t mixed = (tag ^ tag >> 32) * 0x9e3779b97f4a7c15;
  return static_cast<uint16_t>(1 + (mixed >> 48) % 0xffff);
}

}  // namespace

link::Fingerprint tagged(link::Fingerprint call, uint64_t tag) noexcept {
  call.root = static_cast<uint16_t>(call.root ^ tagDigest(tag));
  return call;
}

namespace {

std::string tagText(uint64_t tag) { return tag == 0 ? std::string() : fmt::format(", tag {}", tag); }

std::string elementsText(uint64_t count) { return fmt::format("{} element{}", count, count == 1 ? "" : "s"); }

// What is known of the counts on all ranks.
std::string countText(Collective collective, uint64_t count) {
  if (collective == Collective::kAllToAllV) return "a count for each pair of ranks";
  if (countsArePrivate(collective)) return "a count for each rank";
  const bool parts = collective == Collective::kAllGatherV || collective == Collective::kReduceScatterV;
  return elementsText(count) + (parts ? " in all" : "");
}

}  // namespace

std::string describe(const link::Fingerprint& mark, uint64_t tag) {
  const auto collective = collectiveOf(mark);
  const auto type = typeOf(mark);
  if (static_cast<int>(collective) >= kCollectives || static_cast<int>(type) >= kDataTypes || mark.op >= kReduceOps)
    return "an unknown operation";
  std::string text = fmt::format("{} #{}", nameOf(collective), mark.operation);
  if (collective == Collective::kBarrier) return tag == 0 ? text : text + fmt::format(" (tag {})", tag);
  text += fmt::format(" ({}, {}", nameOf(type), countText(collective, mark.count));
  if (reduces(collective)) text += fmt::format(", {}", nameOf(static_cast<ReduceOp>(mark.op)));
  if (hasRoot(collective)) text += fmt::format(", root {}", mark.root);
  return text + tagText(tag) + ")";
}

std::string describeMessage(bool sends, int peer, const link::Fingerprint& mark, uint64_t tag) {
  const auto type = typeOf(mark);
  if (static_cast<int>(type) >= kDataTypes) return "an unknown message";
  return fmt::format("{} rank {} #{} ({}, {}{})", sends ? "send to" : "receive from", peer, mark.operation,
                     nameOf(type), elementsText(mark.count), tagText(tag));
}

link::Fingerprint planned(link::Fingerprint call, const schedule::Schedule& schedule, uint32_t channels) noexcept {
  call.algorithm = static_cast<uint8_t>(1 + static_cast<int>(schedule.algorithm));
  call.channels = channels;
  call.grouping = schedule.grouping;
  return call;
}

std::string describePlan(const link::Fingerprint& mark) {
  if (!mark.planned() || mark.algorithm > schedule::algorithmCount()) return "an unknown algorithm";
  const auto algorithm = static_cast<schedule::Algorithm>(mark.algorithm - 1);
  const std::string hosts = mark.grouping == 0 ? "" : fmt::format(" (grouping {:03x})", uint64_t{mark.grouping});
  return fmt::format("{}{} over {} channel{}", nameOf(algorithm), hosts, uint64_t{mark.channels},
                     mark.channels == 1 ? "" : "s");
}

std::string Call::describe(uint64_t number) const {
  const auto mark = fingerprint(number);
  return collective == Collective::kSendRecv ? describeMessage(sends, root, mark, tag) : comm::describe(mark, tag);
}

namespace {

// Every call passes here.
kernels::Layout layoutOf(const Call& call, const schedule::Schedule& schedule, size_t chunkBytes) noexcept {
  kernels::Layout layout;
  layout.segments = schedule.segments;
  layout.perRank = schedule.map == schedule::SegmentMap::kPerRank;
  const int shift = std::countr_zero(sizeOf(call.type));
  if (layout.perRank) {
    layout.stride = call.count;
  } else {
    kernels::split(layout, call.count, shift);
  }
  const Collective plain = plainOf(call.collective);
  layout.inputIsSegment = plain == Collective::kAllGather || plain == Collective::kGather;
  layout.outputIsSegment = plain == Collective::kReduceScatter || plain == Collective::kScatter;
  if (call.tables) {
    const auto orNull = [](const std::vector<size_t>& table) { return table.empty() ? nullptr : table.data(); };
    layout.stride = 0;
    layout.inputCounts = orNull(call.tables->inputCounts);
    layout.inputOffsets = orNull(call.tables->inputOffsets);
    layout.outputCounts = orNull(call.tables->outputCounts);
    layout.outputOffsets = orNull(call.tables->outputOffsets);
  }
  layout.chunk = chunkBytes >> shift;  // at least 1: every plan sees to it
  layout.speaks = call.isOfNothing();
  return layout;
}

// A reduction of bool gives 0 or 1. What is reduced with nothing else would be copied; times "true" it is not.
void makeTruth(engine::LaneWork& work) noexcept {
  work.arithmetic.op = ReduceOp::kPreMulSum;
  work.arithmetic.factor = 1;
  work.scalesInput = true;
}

}  // namespace

engine::LaneWork toWork(const Call& call, const link::Fingerprint& mark, const schedule::Schedule& schedule,
                        size_t chunkBytes, uint32_t channel, uint32_t channels) noexcept {
  engine::LaneWork work;
  work.input = call.send;
  work.output = call.recv;
  work.layout = layoutOf(call, schedule, chunkBytes);
  work.layout.channel = channel;
  work.layout.channels = channels;
  work.elementBytes = sizeOf(call.type);
  work.arithmetic.type = call.type;
  work.arithmetic.op = call.op;
  if (reduces(call.collective)) {
    if (call.op == ReduceOp::kAvg) work.arithmetic.divisor = static_cast<uint32_t>(schedule.size);
    work.arithmetic.factor = call.factor;
    work.scalesInput = call.op == ReduceOp::kPreMulSum;
    if (call.type == DataType::kBool && schedule.size == 1) makeTruth(work);
  }
  work.fingerprint = call.tag == 0 ? mark : tagged(mark, call.tag);
  return work;
}

}  // namespace tutti::comm

// A schedule: one rank's part of a collective, as data.
//
// There is one kind of step: reduce `from` into `to`. One source is a copy; a link among the sources is a receive,
// a link among the destinations a send. Lanes, streams, kernels and the verifier read this form as it is.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace tutti::schedule {

// Where a step reads or writes: 2 bits of kind, 14 bits of index, so that a list of them is small and flat.
//
//   input    the caller's send buffer, at the step's segment. In an all-gather it holds the own segment only.
//   output   the caller's receive buffer, at the step's segment.
//   scratch  index = number of a private buffer of one slot's size; lives for one round.
//   link     index = position in Schedule::inPeers (among the sources) or Schedule::outPeers (among the destinations).
class Operand {
 public:
  enum class Kind : uint8_t { kInput, kOutput, kScratch, kLink };
  static constexpr int kMaxIndex = (1 << 14) - 1;

  constexpr Operand() = default;
  constexpr Operand(Kind kind, int index = 0) noexcept
      : bits_(static_cast<uint16_t>(static_cast<int>(kind) << 14 | index)) {}
  static constexpr Operand input() noexcept { return {Kind::kInput}; }
  static constexpr Operand output() noexcept { return {Kind::kOutput}; }
  static constexpr Operand scratch(int index) noexcept { return {Kind::kScratch, index}; }
  static constexpr Operand link(int index) noexcept { return {Kind::kLink, index}; }
  constexpr Kind kind() const noexcept { return static_cast<Kind>(bits_ >> 14); }
  constexpr int index() const noexcept { return bits_ & kMaxIndex; }
  constexpr bool isLink() const noexcept { return kind() == Kind::kLink; }
  friend constexpr bool operator==(Operand, Operand) = default;

 private:
  uint16_t bits_ = 0;
};

// Segments are numbered 0 … Schedule::segments - 1. A step works on `span` of them, from `segment` on, wrapping
// around at the end; one slot then carries one chunk of each, packed in that order. A chunk is at most
// slotBytes / maxSpan bytes. In iteration t the step works on round t - lag and is skipped unless that is a round.
struct Step {
  uint32_t fromBegin = 0, toBegin = 0;  // positions in Schedule::operands
  uint16_t fromCount = 0, toCount = 0;
  uint32_t segment = 0;
  uint16_t span = 1;
  uint8_t lag = 0;
  uint8_t flags = 0;
  uint16_t skip = 0;  // segments before the step's that the scratch buffer among its sources holds as well
};
static_assert(sizeof(Step) == 24);

// The result is complete: divide it for an average. Set on the one step per element that makes the final value.
inline constexpr uint8_t kFinalise = 1;
// Whoever receives the step's value stores it to the same segment of its output as it is, so over a direct link the
// sender may write it there.
inline constexpr uint8_t kDirectWrite = 2;
// Whoever receives the step's value stores it to some segment of its output as it is, and may read it where it lies.
inline constexpr uint8_t kLands = 4;

// The numbers of the algorithms that are built in (algorithm.h). Slots carry them: a new one comes last.
enum class Algorithm : uint8_t {
  kRing,
  kTree,
  kOneShot,
  kTwoShot,
  kHalving,
  kBruck,
  kDirect,
  kHierarchical,
  kDoubling,
  kTwoPass
};
inline constexpr int kBuiltInAlgorithms = 10;
std::string_view nameOf(Algorithm algorithm);  // throws Error(kInternal) for a number that none has

// How a segment number maps to memory.
//   kSplit    the message of `count` elements is cut into `segments` parts of an equal, aligned stride
//             (all-reduce, broadcast, reduce); the last ones may be shorter or empty.
//   kPerRank  segment s belongs to rank s and has that rank's count (all-gather, reduce-scatter, all-to-all, gather,
//             scatter and the v-variants); `segments` equals the number of ranks.
// With kPerRank the caller's small buffer (all-gather's and gather's input, reduce-scatter's and scatter's output)
// holds one segment only: it is addressed as segment `rank` (any other segment of it is an error).
enum class SegmentMap : uint8_t { kSplit, kPerRank };

struct Schedule {
  Collective collective = Collective::kAllReduce;
  Algorithm algorithm = Algorithm::kRing;
  SegmentMap map = SegmentMap::kSplit;
  int rank = 0, size = 1, root = 0;
  uint32_t segments = 1;
  uint16_t scratches = 0;  // of the rank with most; the same on every rank, as a GPU's slots are no longer than these
  uint16_t maxSpan = 1;    // largest Step::span of any rank of this collective
  uint8_t maxLag = 0;      // largest Step::lag of this rank
  uint16_t depth = 1;      // smallest FIFO depth with which all ranks together finish; the same on every rank
  // Direct links (see races.h) are right also where input and output are the same memory; the same on every rank.
  bool directInPlace = true;
  // A digest of which ranks are together, of algorithms that go by it; else 0. The same on every rank.
  static constexpr uint16_t kMostGrouping = (1 << 9) - 1;
  uint16_t grouping = 0;
  std::vector<int> inPeers, outPeers;
  std::vector<Operand> operands;
  std::vector<Step> steps;

  std::span<const Operand> from(const Step& step) const { return {operands.data() + step.fromBegin, step.fromCount}; }
  std::span<const Operand> to(const Step& step) const { return {operands.data() + step.toBegin, step.toCount}; }
};

}  // namespace tutti::schedule

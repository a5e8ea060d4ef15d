// Recursive halving and doubling: about log2 n exchanges per phase, with few and larger slots. R. Thakur, R.
// Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", 2005.
//
// All-reduce and all-gather pair the ranks of a hypercube of p = 2^k corners. Of n > p ranks the first 2 (n - p) stand
// in pairs: the odd one hands its contribution to the even one, which stands for both, and gets the result back. A
// corner's segments are neighbours, so every message is one span and one slot. Of each segment only one rank makes the
// sum, the owner; all others copy it, so that all have the same bits.
//
//   four ranks, segments 0 … 3, all-reduce
//     halving    0 <-> 2 and 1 <-> 3 exchange two segments: 0 and 1 add up {0 1}, 2 and 3 {2 3}
//                0 <-> 1 and 2 <-> 3 exchange one: each has the sum of its own
//     doubling   the same pairs the other way round: one segment, then two
//
// Between n = 2^k ranks 2 k steps, and 2 (n - 1)/n of the message sent by each, as along a ring. Of other numbers those
// who stand aside add two steps and the whole message, in and out.
//
// The reduce-scatter has no large buffer to keep partial sums in: scratch buffers hold those of half the segments, of
// which the next step reads a part. That is so among 2^k ranks. Of others its messages carry one segment each, and it
// runs the doubling backwards: see Fold.
#include <algorithm>
#include <bit>
#include <utility>

#include "schedule/grid.h"

namespace tutti::schedule {
namespace {

constexpr Collective kHalvingHas[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter};

class HalvingDoubling {
 public:
  HalvingDoubling(Builder& builder, bool segmentPerRank)
      : builder_(builder),
        cube_(builder.size()),
        perRank_(segmentPerRank),
        rank_(builder.rank()),
        corner_(cube_.cornerOf(rank_)) {}

  void allReduce() {
    const int all = cube_.corners();
    if (cube_.standsAside(rank_)) {
      builder_.at(0).span(all).from(Operand::input()).toRank(rank_ - 1);
      builder_.at(0).span(all).fromRank(rank_ - 1).to(Operand::output());
      return;
    }
    const bool two = cube_.standsForTwo(rank_);
    if (two) builder_.at(0).span(all).from(Operand::input()).fromRank(rank_ + 1).to(Operand::output());
    for (int half = all / 2; half > 0; half /= 2) {
      halve(half, two || half < all / 2 ? Operand::output() : Operand::input());
    }
    unfold();
    if (two) builder_.at(0).span(all).from(Operand::output()).toRank(rank_ + 1);
  }

  // The one who stands aside gets all segments but its own: a span that starts after it and wraps around.
  void allGather() {
    const int size = builder_.size();
    if (cube_.standsAside(rank_)) {
      builder_.at(rank_).from(Operand::input()).to(Operand::output()).toRank(rank_ - 1);
      builder_.at((rank_ + 1) % size).span(size - 1).fromRank(rank_ - 1).to(Operand::output());
      return;
    }
    builder_.at(rank_).from(Operand::input()).to(Operand::output());
    const bool two = cube_.standsForTwo(rank_);
    if (two) builder_.at(rank_ + 1).fromRank(rank_ + 1).to(Operand::output());
    unfold();
    if (two) builder_.at((rank_ + 2) % size).span(size - 1).from(Operand::output()).toRank(rank_ + 1);
  }

  // Among 2^k ranks. Two scratch buffers in turn hold the sums of the own block.
  void reduceScatter() {
    builder_.scratches(std::min(2, log2Ceil(cube_.corners()) - 1));
    Operand held = Operand::input();
    int begin = 0, turn = 0;  // of what is held, and where the next sums go
    for (int half = cube_.corners() / 2; half > 0; half /= 2) {
      const int across = corner_ ^ half, given = first(across, half), kept = first(corner_, half);
      const bool fromScratch = held != Operand::input();
      const Operand next = half == 1 ? Operand::output() : Operand::scratch(std::exchange(turn, 1 - turn));
      builder_.at(given).span(half).from(held).toRank(across).skip(fromScratch ? given - begin : 0);
      auto sum = builder_.at(kept).span(half).from(held).fromRank(across).to(next).skip(fromScratch ? kept - begin : 0);
      if (half == 1) sum.finalise();
      held = next, begin = kept;
    }
  }

  int maxSpan() const {
    if (cube_.corners() < builder_.size()) return perRank_ ? builder_.size() - 1 : cube_.corners();
    return cube_.corners() / 2;
  }

 private:
  // The segments of the block of `length` corners that `corner` is in.
  int first(int corner, int length) const {
    const int begin = corner & ~(length - 1);
    return perRank_ ? cube_.rankAt(begin) : begin;
  }
  int span(int corner, int length) const {
    const int end = (corner & ~(length - 1)) + length;
    return (!perRank_ ? end : end == cube_.corners() ? builder_.size() : cube_.rankAt(end)) - first(corner, length);
  }

  // Gives away the half of the own block in which the partner stands, and adds the partner's share of the other half.
  void halve(int half, Operand held) {
    const int across = corner_ ^ half, partner = cube_.rankAt(across);
    builder_.at(first(across, half)).span(half).from(held).toRank(partner);
    auto sum = builder_.at(first(corner_, half)).span(half).from(held).fromRank(partner).to(Operand::output());
    if (half == 1) sum.finalise();
  }

  void unfold() {
    for (int have = 1; have < cube_.corners(); have *= 2) {
      const int across = corner_ ^ have, partner = cube_.rankAt(across);
      builder_.at(first(corner_, have)).span(span(corner_, have)).from(Operand::output()).toRank(partner).directWrite();
      builder_.at(first(across, have)).span(span(across, have)).fromRank(partner).to(Operand::output());
    }
  }

  Builder& builder_;
  Cube cube_;
  bool perRank_;
  int rank_, corner_;
};

// Bruck's doubling run backwards. Rank r adds its input for segment r + o to what the ranks r - 2^k (for 2^k < n - o,
// above the highest bit of o) have gathered for it, and sends the sum to r + h, where h is that highest bit: there
// the segment is at offset o - h. At offset 0 it is home. One step per offset, 2 ⌈log2 n⌉ peers, n - 1 messages.
//
// Offsets go in post-order: what a step needs was sent (by all ranks alike) just before it. So no link ever holds more
// than one slot: between a message at offset o + 2^k and its reader at offset o there are only offsets with bits above
// k, which go over other links. Every wait therefore goes to a step that stands earlier in the common order, and depth
// 1 is enough whatever the lengths of the segments.
class Fold {
 public:
  explicit Fold(Builder& builder) : builder_(builder) { visit(0, 1); }

 private:
  int rank(int away) const { return (builder_.rank() + away + builder_.size()) % builder_.size(); }

  void visit(int offset, int above) {
    const int size = builder_.size();
    for (int bit = above; offset + bit < size; bit *= 2) visit(offset + bit, 2 * bit);
    auto step = builder_.at(rank(offset)).from(Operand::input());
    for (int bit = above; offset + bit < size; bit *= 2) step.fromRank(rank(-bit));
    if (offset > 0) {
      step.toRank(rank(above / 2));
    } else {
      step.to(Operand::output()).finalise();
    }
  }

  Builder& builder_;
};

Schedule buildHalving(const Shape& shape, int rank) {
  const bool whole = shape.collective == Collective::kAllReduce || shape.collective == Collective::kBarrier;
  const int corners = Cube(shape.size).corners();
  Builder builder(shape, rank, whole ? SegmentMap::kSplit : SegmentMap::kPerRank, whole ? corners : shape.size);
  if (reduces(shape.collective) && !whole && corners < shape.size) {
    const Fold fold(builder);
    return builder.finish(1);
  }
  HalvingDoubling exchange(builder, !whole);
  if (whole) {
    exchange.allReduce();
  } else if (reduces(shape.collective)) {
    exchange.reduceScatter();
  } else {
    exchange.allGather();
  }
  return builder.finish(1, exchange.maxSpan());
}

Workload workloadOfHalving(const Request& request, const Scale& scale) {
  Workload work = inParts(request, scale, doubling(scale));
  if (request.collective == Collective::kAllReduce) addPartners(work, double(request.bytes), scale);
  if (request.collective == Collective::kReduceScatter && Cube(scale.ranks).corners() < scale.ranks)
    work.busiest.messages = work.mean.messages = scale.ranks - 1;  // Fold
  return work;
}

bool halvingPacksAllRanks(Collective collective, int ranks) {
  return plainOf(collective) != Collective::kReduceScatter || Cube(ranks).corners() == ranks;
}

}  // namespace

constinit const AlgorithmRow rows::kHalving{.name = "halving",
                                            .collectives = kHalvingHas,
                                            .build = buildHalving,
                                            .workload = workloadOfHalving,
                                            .packsAllRanks = halvingPacksAllRanks};

}  // namespace tutti::schedule

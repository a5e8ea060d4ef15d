// Recursive halving and doubling: about log2 n exchanges per phase, with few and larger slots; and for an all-reduce of
// few bytes doubling by itself. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication
// operations in MPICH", 2005.
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
// Doubling by itself exchanges all that the corners have added up so far, whole, between pairs at a distance that
// doubles: k steps with k messages of a rank, and each rank makes the sum itself. It is that of the lower half of the
// corners plus that of the upper one, wherever it is made, so that all have the same bits.
//
// The reduce-scatter has no large buffer to keep partial sums in, and a slot cannot be taken in parts: its messages
// carry one segment each. It runs the doubling backwards for any n: see Fold.
#include <algorithm>
#include <bit>

#include "schedule/builder.h"

namespace tutti::schedule {
namespace {

constexpr Collective kDoublingHas[] = {Collective::kAllReduce};
constexpr Collective kHalvingHas[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter};

class Cube {
 public:
  explicit Cube(int size)
      : corners_(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))), pairs_(size - corners_) {}

  int corners() const { return corners_; }
  int cornerOf(int rank) const { return rank < 2 * pairs_ ? rank / 2 : rank - pairs_; }
  int rankAt(int corner) const { return corner < pairs_ ? 2 * corner : corner + pairs_; }
  bool standsAside(int rank) const { return rank < 2 * pairs_ && rank % 2 == 1; }
  bool standsForTwo(int rank) const { return rank < 2 * pairs_ && rank % 2 == 0; }

 private:
  int corners_, pairs_;
};

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

class Doubling {
 public:
  explicit Doubling(Builder& builder) : builder_(builder), cube_(builder.size()), rank_(builder.rank()) {
    if (cube_.standsAside(rank_)) {
      builder_.at(0).from(Operand::input()).toRank(rank_ - 1);
      builder_.at(0).fromRank(rank_ - 1).to(Operand::output());
      return;
    }
    begin();
    for (int distance = 1; distance < cube_.corners(); distance *= 2) exchange(distance);
  }

 private:
  int across(int distance) const { return cube_.rankAt(cube_.cornerOf(rank_) ^ distance); }

  // What the corner has at first goes to its neighbour.
  void begin() {
    auto step = builder_.at(0).from(Operand::input());
    if (cube_.standsForTwo(rank_)) hold(step.fromRank(rank_ + 1));
    step.toRank(across(1));
  }
  void hold(Builder::Draft step) {
    held_ = Operand::scratch(next_);
    next_ = 1 - next_;
    step.to(held_);
  }

  void exchange(int distance) {
    const Operand mine = held_;
    auto sum = builder_.at(0);
    if ((cube_.cornerOf(rank_) & distance) == 0) {
      sum.from(mine).fromRank(across(distance));
    } else {
      sum.fromRank(across(distance)).from(mine);
    }
    if (2 * distance < cube_.corners()) {
      sum.toRank(across(2 * distance));
      hold(sum);
    } else {
      sum.to(Operand::output()).finalise();
      if (cube_.standsForTwo(rank_)) sum.toRank(rank_ + 1);
    }
  }

  Builder& builder_;
  Cube cube_;
  int rank_;
  Operand held_ = Operand::input();
  int next_ = 0;
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
  if (reduces(shape.collective) && !whole) {
    const Fold fold(builder);
    return builder.finish(1);
  }
  HalvingDoubling exchange(builder, !whole);
  if (whole) {
    exchange.allReduce();
  } else {
    exchange.allGather();
  }
  return builder.finish(1, exchange.maxSpan());
}

Schedule buildDoubling(const Shape& shape, int rank) {
  Builder builder(shape, rank, SegmentMap::kSplit, 1);
  const Doubling doubling(builder);
  builder.directOutOfPlaceOnly();
  return builder.finish(1);
}

// Those who stand aside hand their whole input to their partners first, and get the result at last.
void addPartners(Workload& work, double bytes, const Scale& scale) {
  const int corners = Cube(scale.ranks).corners();
  if (corners == scale.ranks) return;
  const double aside = 1.0 - double(corners) / scale.ranks;
  work.steps += 2;
  for (Load* load : {&work.busiest, &work.mean}) {
    const double share = load == &work.mean ? aside : 1;
    load->sent += share * bytes, load->received += share * bytes, load->combined += share * bytes;
    load->messages += share;
  }
  work.filling += std::min<double>(bytes, scale.slotBytes);
}

Workload workloadOfHalving(const Request& request, const Scale& scale) {
  Workload work = inParts(request, scale, doubling(scale));
  if (request.collective == Collective::kAllReduce) addPartners(work, double(request.bytes), scale);
  return work;
}

Workload workloadOfDoubling(const Request& request, const Scale& scale) {
  Pattern pattern = doubling(scale);
  pattern.hops = pattern.messages = log2Ceil(Cube(scale.ranks).corners());
  const double bytes = pattern.hops * double(request.bytes);
  Workload work = evenly(scale, pattern, 1, bytes, bytes);
  addPartners(work, double(request.bytes), scale);
  return work;
}

bool halvingPacksAllRanks(Collective collective) { return plainOf(collective) != Collective::kReduceScatter; }

}  // namespace

constinit const AlgorithmRow rows::kHalving{.name = "halving",
                                            .collectives = kHalvingHas,
                                            .build = buildHalving,
                                            .workload = workloadOfHalving,
                                            .packsAllRanks = halvingPacksAllRanks};
constinit const AlgorithmRow rows::kDoubling{
    .name = "doubling", .collectives = kDoublingHas, .build = buildDoubling, .workload = workloadOfDoubling};

}  // namespace tutti::schedule

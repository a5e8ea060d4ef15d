// Doubling: whole messages between ranks at a distance that doubles, for what is so short that its bytes do not matter.
//
//   all-reduce of four ranks   0 <-> 1 and 2 <-> 3 exchange what they have, and each has the sum of two
//                              0 <-> 2 and 1 <-> 3 exchange those, and each has the sum of all
//   broadcast                  0 --> 2, then 0 --> 1 and 2 --> 3: those who have it double (a binomial tree)
//   reduce                     the same backwards
//
// Among 2^k ranks k steps, with k messages of a rank at most. Every rank of an all-reduce makes the sum itself: that of
// the lower half of the corners plus that of the upper one, wherever it is made, so that all have the same bits. Of
// other numbers of ranks see Cube. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication
// operations in MPICH", 2005.
#include <algorithm>
#include <bit>
#include <cmath>

#include "schedule/grid.h"

namespace tutti::schedule {
namespace {

constexpr Collective kDoublingHas[] = {Collective::kAllReduce, Collective::kBroadcast, Collective::kReduce};

class AllReduce {
 public:
  explicit AllReduce(Builder& builder) : builder_(builder), cube_(builder.size()), rank_(builder.rank()) {
    const bool pairs = cube_.corners() < builder_.size();
    builder_.scratches(std::min(2, log2Ceil(cube_.corners()) - (pairs ? 0 : 1)));
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

// The root is place 0, the others follow by their numbers. A place's parent lacks its lowest bit; its children have one
// bit below that more.
class Binomial {
 public:
  Binomial(const Builder& builder, int root)
      : size_(builder.size()), root_(root), place_((builder.rank() - root + size_) % size_) {}

  bool isRoot() const { return place_ == 0; }
  int parent() const { return rankAt(place_ & (place_ - 1)); }
  // Calls visit(rank), the child with most below it first.
  template <class Visit>
  void forEachChild(Visit visit) const {
    const int below = isRoot() ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size_))) : place_ & -place_;
    for (int bit = below / 2; bit > 0; bit /= 2)
      if (place_ + bit < size_) visit(rankAt(place_ + bit));
  }

 private:
  int rankAt(int place) const { return (root_ + place) % size_; }
  int size_, root_, place_;
};

void broadcastBinomial(Builder& builder, int root) {
  const Binomial tree(builder, root);
  auto step = builder.at(0);
  if (tree.isRoot()) {
    step.from(Operand::input());
  } else {
    step.fromRank(tree.parent());
  }
  step.to(Operand::output()).lands();
  tree.forEachChild([&](int child) { step.toRank(child); });
}

void reduceBinomial(Builder& builder, int root) {
  const Binomial tree(builder, root);
  auto step = builder.at(0).from(Operand::input());
  tree.forEachChild([&](int child) { step.fromRank(child); });
  if (tree.isRoot()) {
    step.to(Operand::output()).finalise();
  } else {
    step.toRank(tree.parent());
  }
}

Schedule buildDoubling(const Shape& shape, int rank) {
  Builder builder(shape, rank, SegmentMap::kSplit, 1);
  if (shape.collective == Collective::kBroadcast) {
    broadcastBinomial(builder, shape.root);
  } else if (shape.collective == Collective::kReduce) {
    reduceBinomial(builder, shape.root);
  } else {
    const AllReduce doubling(builder);
    builder.directOutOfPlaceOnly();
  }
  return builder.finish(1);
}

// The root has most to do. Half of the ranks hand on what they have.
Workload workloadOfBinomial(const Request& request, const Scale& scale) {
  const double bytes = double(request.bytes), depth = log2Ceil(scale.ranks), ranks = scale.ranks;
  const double share = (ranks - 1) / ranks * bytes, handed = (ranks - 1 - std::floor(ranks / 2)) / ranks * bytes;
  Workload work;
  work.fan = depth;
  fillPipeline(work, scale, depth, bytes);
  if (request.collective == Collective::kReduce) {
    work.busiest = {bytes, depth * bytes, depth * bytes, depth};
    work.mean = {share, share, share, (ranks - 1) / ranks};
  } else {
    work.busiest = {depth * bytes, bytes, 0, depth, (depth - 1) * bytes};
    work.mean = {share, share, 0, (ranks - 1) / ranks, handed};
  }
  work.crossings = doubling(scale).crossings;
  return work;
}

Workload workloadOfDoubling(const Request& request, const Scale& scale) {
  if (hasRoot(request.collective)) return workloadOfBinomial(request, scale);
  Pattern pattern = doubling(scale);
  pattern.hops = pattern.messages = log2Ceil(Cube(scale.ranks).corners());
  const double bytes = pattern.hops * double(request.bytes);
  Workload work = evenly(scale, pattern, 1, bytes, bytes);
  addPartners(work, double(request.bytes), scale);
  if (keepsInput(scale)) work.kept = double(request.bytes);
  return work;
}

}  // namespace

constinit const AlgorithmRow rows::kDoubling{
    .name = "doubling", .collectives = kDoublingHas, .build = buildDoubling, .workload = workloadOfDoubling};

}  // namespace tutti::schedule

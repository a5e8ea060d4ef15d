// Ring and chain: every rank speaks to two neighbours only.
//
// Each segment of the message goes around the ring twice. On the first way every rank adds its own part, and the rank
// at which the way ends has the sum; on the second way that goes to all. All links are busy all the time, each with
// another segment (P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// 2009).
//
//   segment 0 of four ranks     0 --> 1 --> 2 --> 3        adding
//                               ^-----------------|
//                               0 --> 1 --> 2              as it is
//
// Around the ring ranks of one host follow one another, so that each host is entered and left once.
//
// Between n ranks: 2 (n - 1) steps, and 2 (n - 1)/n of the message sent by each; half of both for an all-gather or a
// reduce-scatter. Broadcast and reduce go along the ring cut open at the root, a chain: n - 1 steps, and the whole
// message once over each link. Or both ways around it, as two chains of half the length, for which the root has twice
// as much to do: where ranks share their cores it is the others that are waited for.
#include <array>

#include "schedule/grid.h"

namespace tutti::schedule {
namespace {

constexpr Collective kRingHas[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                                   Collective::kBroadcast, Collective::kReduce};

// Who is beside a rank on its way from the root: nobody, or one; behind the root there may be two.
struct Beside {
  int before = -1;
  std::vector<int> behind;
};

Beside besideOf(const Shape& shape, int rank, const Row& ring) {
  const int size = shape.size, root = ring.placeOf(shape.root);
  const int position = (ring.placeOf(rank) - root + size) % size;
  const auto at = [&](int other) { return ring.rankAt((root + other) % size); };
  const int ahead = shape.bothWays ? (size - 1) / 2 : size - 1;  // so many are reached in the order of the ring
  const bool goesBack = position > ahead;
  Beside beside;
  if (position > 0) beside.before = at(goesBack ? (position + 1) % size : position - 1);
  if (position < ahead) beside.behind.push_back(at(position + 1));
  if (position == 0 && ahead < size - 1) beside.behind.push_back(at(size - 1));
  if (goesBack && position > ahead + 1) beside.behind.push_back(at(position - 1));
  return beside;
}

// The chain needs no lag: a rank sends a round on and turns to the next at once.
Schedule buildChain(const Shape& shape, int rank, const Row& ring) {
  const auto [before, behind] = besideOf(shape, rank, ring);
  const bool isRoot = before < 0;
  Builder builder(shape, rank, SegmentMap::kSplit, 1);
  auto step = builder.at(0);
  if (shape.collective == Collective::kBroadcast) {
    if (isRoot) step.from(Operand::input());
    if (!isRoot) step.fromRank(before);
    step.to(Operand::output());
    for (const int peer : behind) step.toRank(peer).directWrite();
  } else {
    for (const int peer : behind) step.fromRank(peer);
    step.from(Operand::input());
    if (isRoot) step.to(Operand::output()).finalise();
    if (!isRoot) step.toRank(before);
  }
  return builder.finish(1);
}

Schedule buildRing(const Shape& shape, int rank) {
  const Row ring(shape.groupOf, shape.within);
  Schedule schedule = hasRoot(shape.collective) ? buildChain(shape, rank, ring)
                                                : buildOnGrid(shape, rank, Hosts::eachAlone(ring, shape.size));
  schedule.grouping = shape.bothWays ? digestOf(std::array{int{ring.digest()}, 2}) : ring.digest();
  return schedule;
}

Workload workloadOfChain(double bytes, bool combines, const Scale& scale) {
  const double share = double(scale.ranks - 1) / scale.ranks;
  Workload work;
  work.busiest = {bytes, bytes, combines ? bytes : 0, 1};
  work.mean = {share * bytes, share * bytes, combines ? share * bytes : 0, share};
  fillPipeline(work, scale, scale.ranks - 1, bytes);
  return work;
}

Workload workloadOfRing(const Request& request, const Scale& scale) {
  if (!hasRoot(request.collective)) return inParts(request, scale, neighbours(scale));
  return workloadOfChain(double(request.bytes), request.collective == Collective::kReduce, scale);
}

}  // namespace

constinit const AlgorithmRow rows::kRing{
    .name = "ring", .collectives = kRingHas, .build = buildRing, .workload = workloadOfRing, .alongTheRow = true};

}  // namespace tutti::schedule

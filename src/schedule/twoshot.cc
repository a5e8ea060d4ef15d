// Two-shot: a reduce-scatter and an all-gather, each in one step among all ranks.
//
//   four ranks   first    segment s of every rank --> rank s, which adds them up
//                then     its sum --> all others
//
// Two steps, and 2 (n - 1)/n of the message sent by each of n ranks: as little as along a ring.
//
// Two-pass: the same steps, but the sums of a long message are handed out when all of them are there, not each in its
// round. So ranks that take turns on their cores wait for each other twice, and not twice a round. The sums have left
// the caches by then.
#include "schedule/grid.h"

namespace tutti::schedule {
namespace {

constexpr Collective kTwoShotHas[] = {Collective::kAllReduce};

Schedule buildTwoShot(const Shape& shape, int rank) { return buildOnGrid(shape, rank, Hosts::together(shape.size)); }

Workload workloadOfTwoShot(const Request& request, const Scale& scale) {
  // Its part of the sum goes to all.
  const double part = double(request.bytes) / scale.ranks;
  return repeating(inParts(request, scale, everyone(scale)), (scale.ranks - 2) * part);
}

// Rounds, after which both passes go on side by side: messages of 32 MiB among four ranks, in slots of 64 KiB.
constexpr int kApart = 128;

// No deadlock at depth 3, whatever the lengths of the segments: order all steps of all ranks by iteration, and then as
// they stand here. Who waits for a slot waits for an earlier step of this order: what comes over links is read an
// iteration after it was posted. On each link what is added up and sums take turns once there are both. Who waits for
// room for what is added up, with three slots in between, waits for the sum of the iteration before the last, which is
// stored in the last; who waits for room for a sum, for what came to be added up in the last, which is read in this
// one, by an earlier step.
Schedule buildTwoPass(const Shape& shape, int rank) {
  Builder builder(shape, rank, SegmentMap::kSplit, shape.size);
  const auto after = [&](int d) { return (rank + d) % shape.size; };
  for (int d = 1; d < shape.size; ++d) builder.at(after(d)).from(Operand::input()).toRank(after(d));
  auto sum = builder.at(rank);
  fromAll(sum, builder);
  sum.to(Operand::output()).finalise().lag(1);
  auto spread = builder.at(rank).from(Operand::output()).lands().directWrite().lag(kApart);
  toOthers(spread, builder);
  for (int d = shape.size - 1; d > 0; --d)
    builder.at(after(d)).fromRank(after(d)).to(Operand::output()).lag(kApart + 1);
  return builder.finish(3);
}

// What two-shot's is, but that its sums are read again, of which a fourth is counted: a fit.
Workload workloadOfTwoPass(const Request& request, const Scale& scale) {
  const double again = double(request.bytes) / scale.ranks / 4;
  Workload work = workloadOfTwoShot(request, scale);
  work.handed = 0;
  work.busiest.sent += again;
  work.mean.sent += again;
  return work;
}

}  // namespace

constinit const AlgorithmRow rows::kTwoShot{.name = "twoshot",
                                            .collectives = kTwoShotHas,
                                            .build = buildTwoShot,
                                            .workload = workloadOfTwoShot,
                                            .linksToAll = true,
                                            .addsInRankOrder = true};

constinit const AlgorithmRow rows::kTwoPass{.name = "twopass",
                                            .collectives = kTwoShotHas,
                                            .build = buildTwoPass,
                                            .workload = workloadOfTwoPass,
                                            .linksToAll = true,
                                            .addsInRankOrder = true};

}  // namespace tutti::schedule

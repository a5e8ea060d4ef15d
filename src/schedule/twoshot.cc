// Two-shot: a reduce-scatter and an all-gather, each in one step among all ranks.
//
//   four ranks   first    segment s of every rank --> rank s, which adds them up
//                then     its sum --> all others
//
// Two steps, and 2 (n - 1)/n of the message sent by each of n ranks: as little as along a ring.
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

}  // namespace

constinit const AlgorithmRow rows::kTwoShot{.name = "twoshot",
                                            .collectives = kTwoShotHas,
                                            .build = buildTwoShot,
                                            .workload = workloadOfTwoShot,
                                            .linksToAll = true,
                                            .addsInRankOrder = true};

}  // namespace tutti::schedule

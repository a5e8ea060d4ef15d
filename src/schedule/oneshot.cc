// One-shot: every rank sends its whole message to every other, and each adds up what it gets, in the order of the
// ranks, so that all have the same bits.
//
//   four ranks   0 --> 1, 2, 3      1 --> 2, 3, 0      2 --> 3, 0, 1      3 --> 0, 1, 2      all at once
//
// One step, in which each of n ranks sends and adds n - 1 messages: the least latency, and the most bytes.
#include "schedule/builder.h"

namespace tutti::schedule {
namespace {

constexpr Collective kOneShotHas[] = {Collective::kAllReduce};

Schedule buildOneShot(const Shape& shape, int rank) {
  Builder builder(shape, rank, SegmentMap::kSplit, 1);
  auto send = builder.at(0).from(Operand::input());
  toOthers(send, builder);
  auto sum = builder.at(0);
  fromAll(sum, builder);
  sum.to(Operand::output()).finalise();
  builder.directOutOfPlaceOnly();
  return builder.finish(1);
}

Workload workloadOfOneShot(const Request& request, const Scale& scale) {
  const double bytes = (scale.ranks - 1) * double(request.bytes);
  Workload work = repeating(evenly(scale, everyone(scale), 1, bytes, bytes), bytes - double(request.bytes));
  if (keepsInput(scale)) work.kept = bytes;
  return work;
}

}  // namespace

constinit const AlgorithmRow rows::kOneShot{.name = "oneshot",
                                            .collectives = kOneShotHas,
                                            .build = buildOneShot,
                                            .workload = workloadOfOneShot,
                                            .linksToAll = true,
                                            .addsInRankOrder = true};

}  // namespace tutti::schedule

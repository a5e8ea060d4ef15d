// Bruck: an all-gather in ⌈log2 n⌉ exchanges for any n (J. Bruck et al., "Efficient algorithms for all-to-all
// communications in multiport message-passing systems", 1997). Rank r gathers the segments r, r + 1, … in this order,
// wrapping around, so that what it has is always one span: with 2^k of them it sends the whole to r - 2^k and gets as
// much from r + 2^k. Each segment lands at its place in the output; the final rotation of the original is not needed.
//
//   rank        0        1        2        3
//   has         0        1        2        3
//   from r + 1  0 1      1 2      2 3      3 0
//   from r + 2  0 1 2 3  1 2 3 0  2 3 0 1  3 0 1 2
//
// Each rank sends n - 1 parts, the same as along a ring, in ⌈log2 n⌉ messages.
#include <algorithm>

#include "schedule/builder.h"

namespace tutti::schedule {

namespace {

constexpr Collective kBruckHas[] = {Collective::kAllGather};

Schedule buildBruck(const Shape& shape, int rank) {
  const int size = shape.size;
  Builder builder(shape, rank, SegmentMap::kPerRank, size);
  int maxSpan = 1;
  for (int have = 1; have < size; have *= 2) {
    const int span = std::min(have, size - have);
    const int ahead = (rank + have) % size, behind = (rank + size - have) % size;
    auto send = builder.at(rank).span(span);
    if (have == 1) {
      send.from(Operand::input()).to(Operand::output());
    } else {
      send.from(Operand::output());
    }
    send.toRank(behind);
    builder.at(ahead).span(span).fromRank(ahead).to(Operand::output());
    maxSpan = std::max(maxSpan, span);
  }
  return builder.finish(1, maxSpan);
}

Workload workloadOfBruck(const Request& request, const Scale& scale) {
  return inParts(request, scale, doubling(scale));
}

bool bruckPacksAllRanks(Collective, int) { return true; }

}  // namespace

constinit const AlgorithmRow rows::kBruck{.name = "bruck",
                                          .collectives = kBruckHas,
                                          .build = buildBruck,
                                          .workload = workloadOfBruck,
                                          .packsAllRanks = bruckPacksAllRanks};

}  // namespace tutti::schedule

// Builders: pure functions from (algorithm, collective, size, root, groups, rank) to that rank's schedule.
// No builder knows a transport, a device or a byte count. One file each: ring.cc, tree.cc, direct.cc, …
#pragma once
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace tutti::schedule {

struct Shape {
  Collective collective = Collective::kAllReduce;
  int size = 1;
  int root = 0;  // rooted collectives only
  // groupOf[r] numbers the host (or other island) of rank r, for the hierarchical builder; empty: one group.
  std::vector<int> groupOf;
};

// The algorithms that this collective has, in the order of their enumeration. The v-variants have the same as their
// uniform siblings where segments may have any length; barrier is an all-reduce; send/receive is built by
// buildSend / buildReceive.
std::span<const Algorithm> algorithmsFor(Collective collective);

// Throws Error(kInvalidArgument) for an algorithm that the collective lacks, naming those it has.
Schedule build(Algorithm algorithm, const Shape& shape, int rank);

// One side of a message between two ranks: a schedule of one step, segment 0 of 1 (SegmentMap::kSplit).
Schedule buildSend(int rank, int size, int peer);
Schedule buildReceive(int rank, int size, int peer);
// Both at once, from this rank's input to its own output (a message to oneself).
Schedule buildSelf(int rank, int size);

}  // namespace tutti::schedule

// Ring and chain: every rank speaks to two neighbours only.
#include "schedule/grid.h"

namespace tutti::schedule {
namespace {

// The ring cut open at the root. The chain needs no lag: a rank sends a round on and turns to the next at once.
Schedule buildChain(const Shape& shape, int rank) {
  const int size = shape.size;
  const int position = (rank - shape.root + size) % size;
  const int after = (rank + 1) % size, before = (rank + size - 1) % size;
  Builder builder(Algorithm::kRing, shape, rank, SegmentMap::kSplit, 1);
  auto step = builder.at(0);
  if (shape.collective == Collective::kBroadcast) {
    if (position == 0) step.from(Operand::input());
    if (position > 0) step.fromRank(before);
    step.to(Operand::output());
    if (position < size - 1) step.toRank(after).lands();
  } else {
    if (position < size - 1) step.fromRank(after);
    step.from(Operand::input());
    if (position == 0) step.to(Operand::output()).finalise();
    if (position > 0) step.toRank(before);
  }
  return builder.finish(1);
}

}  // namespace

Schedule buildRing(const Shape& shape, int rank) {
  if (hasRoot(shape.collective)) return buildChain(shape, rank);
  return buildOnGrid(Algorithm::kRing, shape, rank, Hosts::eachAlone(shape.size));
}

}  // namespace tutti::schedule

// Direct: every rank speaks to every other, in one or two steps of latency.
#include "schedule/grid.h"

namespace tutti::schedule {
namespace {

// The contributions of all ranks in the order of rank, the own one read from the input.
void fromAll(Builder::Draft step, const Builder& builder) {
  for (int peer = 0; peer < builder.size(); ++peer) {
    if (peer == builder.rank()) {
      step.from(Operand::input());
    } else {
      step.fromRank(peer);
    }
  }
}

void toOthers(Builder::Draft step, const Builder& builder) {
  for (int d = 1; d < builder.size(); ++d) step.toRank((builder.rank() + d) % builder.size());
}

void broadcast(Builder& builder, int root) {
  auto step = builder.at(0);
  if (builder.rank() != root) {
    step.fromRank(root).to(Operand::output());
    return;
  }
  step.from(Operand::input()).to(Operand::output());
  toOthers(step, builder);
}

void reduce(Builder& builder, int root) {
  auto step = builder.at(0);
  if (builder.rank() != root) {
    step.from(Operand::input()).toRank(root);
    return;
  }
  fromAll(step, builder);
  step.to(Operand::output()).finalise();
}

void gather(Builder& builder, int root) {
  if (builder.rank() != root) {
    builder.at(builder.rank()).from(Operand::input()).toRank(root);
    return;
  }
  builder.at(root).from(Operand::input()).to(Operand::output());
  for (int d = 1; d < builder.size(); ++d) {
    const int peer = (root + d) % builder.size();
    builder.at(peer).fromRank(peer).to(Operand::output());
  }
}

void scatter(Builder& builder, int root) {
  if (builder.rank() != root) {
    builder.at(builder.rank()).fromRank(root).to(Operand::output());
    return;
  }
  for (int d = 1; d < builder.size(); ++d) {
    const int peer = (root + d) % builder.size();
    builder.at(peer).from(Operand::input()).toRank(peer);
  }
  builder.at(root).from(Operand::input()).to(Operand::output());
}

// In turn k the ranks r and k - r (mod n) exchange, which pairs everybody with everybody once (r with itself when
// 2r = k). Sending r's part for p before p's part for r lands makes the exchange right in place as well.
//
// No deadlock at depth 1, whatever the counts: order all steps by iteration, turn, send before receive. A receive
// waits for the partner's send of the same turn, which stands earlier; a send waits until the partner has received the
// message before on this link, of an earlier iteration. What is empty is skipped by both, so every wait still
// goes to an earlier step and the earliest step that has not run can run.
void allToAll(Builder& builder) {
  const int size = builder.size(), rank = builder.rank();
  builder.directOutOfPlaceOnly();
  for (int turn = 0; turn < size; ++turn) {
    const int peer = (turn - rank + size) % size;
    if (peer == rank) {
      builder.at(rank).from(Operand::input()).to(Operand::output());
      continue;
    }
    builder.at(peer).from(Operand::input()).toRank(peer);
    builder.at(peer).fromRank(peer).to(Operand::output());
  }
}

}  // namespace

Schedule buildOneShot(const Shape& shape, int rank) {
  Builder builder(Algorithm::kOneShot, shape, rank, SegmentMap::kSplit, 1);
  auto send = builder.at(0).from(Operand::input());
  toOthers(send, builder);
  auto sum = builder.at(0);
  fromAll(sum, builder);
  sum.to(Operand::output()).finalise();
  builder.directOutOfPlaceOnly();
  return builder.finish(1);
}

Schedule buildTwoShot(const Shape& shape, int rank) {
  return buildOnGrid(Algorithm::kTwoShot, shape, rank, Hosts::together(shape.size));
}

Schedule buildDirect(const Shape& shape, int rank) {
  const bool whole = shape.collective == Collective::kBroadcast || shape.collective == Collective::kReduce;
  Builder builder(Algorithm::kDirect, shape, rank, whole ? SegmentMap::kSplit : SegmentMap::kPerRank,
                  whole ? 1 : shape.size);
  switch (shape.collective) {
    case Collective::kBroadcast:
      broadcast(builder, shape.root);
      break;
    case Collective::kReduce:
      reduce(builder, shape.root);
      break;
    case Collective::kGather:
      gather(builder, shape.root);
      break;
    case Collective::kScatter:
      scatter(builder, shape.root);
      break;
    case Collective::kAllToAll:
    case Collective::kAllToAllV:
      allToAll(builder);
      break;
    default:
      return buildOnGrid(Algorithm::kDirect, shape, rank, Hosts::together(shape.size));
  }
  return builder.finish(1);
}

}  // namespace tutti::schedule

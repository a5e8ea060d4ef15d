// Direct: every rank speaks to every other, in one step of latency.
//
//   all-gather of four ranks   0 --> 1, 2, 3     each part goes from its rank to all others at once
//   broadcast                  0 --> 1, 2, 3     from the root; reduce, gather and scatter alike
//
// Among n ranks an all-gather, a reduce-scatter and an all-to-all take one step, in which each sends n - 1 parts; with
// a root the root alone sends or takes (n - 1) times the message.
#include "schedule/grid.h"

namespace tutti::schedule {
namespace {

constexpr Collective kDirectHas[] = {Collective::kAllGather, Collective::kReduceScatter, Collective::kBroadcast,
                                     Collective::kReduce,    Collective::kGather,        Collective::kScatter,
                                     Collective::kAllToAll};

void broadcast(Builder& builder, int root) {
  auto step = builder.at(0);
  if (builder.rank() != root) {
    step.fromRank(root).to(Operand::output());
    return;
  }
  step.from(Operand::input()).to(Operand::output()).lands();
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
    builder.at(builder.rank()).from(Operand::input()).toRank(root).lands();
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
    builder.at(peer).from(Operand::input()).toRank(peer).lands();
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
    builder.at(peer).from(Operand::input()).toRank(peer).lands();
    builder.at(peer).fromRank(peer).to(Operand::output());
  }
}

Schedule buildDirect(const Shape& shape, int rank) {
  const bool whole = shape.collective == Collective::kBroadcast || shape.collective == Collective::kReduce;
  Builder builder(shape, rank, whole ? SegmentMap::kSplit : SegmentMap::kPerRank, whole ? 1 : shape.size);
  switch (plainOf(shape.collective)) {
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
      allToAll(builder);
      break;
    default:
      return buildOnGrid(shape, rank, Hosts::together(shape.size));
  }
  return builder.finish(1);
}

// Broadcast and scatter go out of the root, reduce and gather into it.
Workload workloadOfRooted(const Request& request, const Scale& scale) {
  const double bytes = double(request.bytes), all = (scale.ranks - 1) * bytes;
  const bool in = request.collective == Collective::kReduce || request.collective == Collective::kGather;
  Workload work = star(scale, in ? 0 : all, in ? all : 0, bytes, request.collective == Collective::kReduce);
  if (request.collective != Collective::kBroadcast) return work;
  work.busiest.repeated = std::max(0.0, all - bytes);
  work.mean.repeated = work.busiest.repeated / scale.ranks;
  return work;
}

Workload workloadOfDirect(const Request& request, const Scale& scale) {
  if (hasRoot(request.collective)) return workloadOfRooted(request, scale);
  const Workload work = inParts(request, scale, everyone(scale));
  return request.collective == Collective::kAllGather ? repeating(work, (scale.ranks - 2) * double(request.bytes))
                                                      : work;
}

}  // namespace

constinit const AlgorithmRow rows::kDirect{.name = "direct",
                                           .collectives = kDirectHas,
                                           .build = buildDirect,
                                           .workload = workloadOfDirect,
                                           .linksToAll = true,
                                           .addsInRankOrder = true};

}  // namespace tutti::schedule

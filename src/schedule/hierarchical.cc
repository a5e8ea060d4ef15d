// Hierarchical: directly within a host, along rings (one per lane) or trees between hosts, and two hosts in one
// exchange. See grid.h and tree.h.
//
//   two hosts of two ranks    host A: 0 1     host B: 2 3
//     within                  0 and 1 exchange halves: 0 has the host's sum of the first, 1 that of the second
//     between                 0 <-> 2 and 1 <-> 3, rings of their own (of two hosts: an exchange)
//     within                  each hands its half to the others of its host
//
// Of h hosts each sends 2 (h - 1)/h of the message to others, over as many rings as it has ranks: what is sent within a
// host never leaves it. 2 (h - 1) steps between hosts and two within them; with a root ⌈log2 h⌉ and one. Each of the m
// ranks of a host sends 2 (m - 1)/m of the message to the others of it.
//
// Two hosts need no ring for an all-reduce: each lane's members send each other what their hosts have, and both add the
// two. That is the message once, as along the ring, in one step instead of two; and twice the adding, of what a network
// brings. Who is alone on its host would lend the other one its input, and add to it where that is its output: then it
// is the ring.
//
// The hosts may be the cores of a single host, each shared by several of its ranks: what crosses between cores does so
// once.
#include <algorithm>

#include "schedule/grid.h"
#include "schedule/tree.h"

namespace tutti::schedule {
namespace {

constexpr Collective kHierarchicalHas[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                                           Collective::kBroadcast, Collective::kReduce};

// The hosts in the tree are numbered from the root's on; the root leads its own host, elsewhere the first member does.
TreeTeam teamOf(const Hosts& hosts, int root, int rank) {
  const int rootHost = hosts.hostOf(root), host = hosts.hostOf(rank);
  TreeTeam team;
  team.size = hosts.count();
  team.position = (host - rootHost + hosts.count()) % hosts.count();
  team.leaderOf = [&hosts, root, rootHost](int position) {
    return position == 0 ? root : hosts.rankOf((position + rootHost) % hosts.count(), 0);
  };
  const int leader = team.leaderOf(team.position);
  for (int member = 0; member < hosts.membersOf(host); ++member) {
    if (hosts.rankOf(host, member) != leader) team.others.push_back(hosts.rankOf(host, member));
  }
  return team;
}

Schedule buildOnHosts(const Shape& shape, int rank, const Hosts& hosts) {
  if (!hasRoot(shape.collective)) return buildOnGrid(shape, rank, hosts);
  Builder builder(shape, rank, SegmentMap::kSplit, kTrees);
  const TreeTeam team = teamOf(hosts, shape.root, rank);
  if (shape.collective == Collective::kBroadcast) {
    broadcastOnTrees(builder, team);
  } else {
    reduceOnTrees(builder, team);
  }
  return builder.finish(1);
}

Schedule buildHierarchical(const Shape& shape, int rank) {
  const Hosts hosts = Hosts::of(shape.groupOf, shape.size);
  Schedule schedule = buildOnHosts(shape, rank, hosts);
  schedule.grouping = hosts.digest();
  return schedule;
}

bool isOnHosts(const Scale& scale) { return scale.hosts > 1 && scale.ranksPerHost > 1; }

bool isOnCores(const Scale& scale) { return scale.hosts <= 1 && scale.cores > 1; }

std::string objectionToHierarchical(const Scale& scale) {
  if (isOnCores(scale)) return "";
  if (scale.hosts <= 1) return "all ranks are on one host";
  return scale.ranksPerHost <= 1 ? "every host has one rank only" : "";
}

// All lanes at once, on the same cores as what the ranks of a core have among themselves. With a root nothing gains by
// it but the shortest reduces (docs/decisions/0059): these have the price of what they are not, which is too high.
void stagesOnCores(const Request& request, const Scale& scale, std::array<Stage, 2>& stages) {
  const int ranksEach = std::max(1, scale.ranks / scale.cores);
  const bool split = request.collective == Collective::kAllReduce;
  Stage within{split ? Algorithm::kTwoShot : Algorithm::kDirect, request, scale};
  Stage between{split && scale.cores == 2 ? Algorithm::kOneShot : Algorithm::kRing, request, scale};
  within.scale.ranks = within.scale.ranksPerHost = ranksEach, within.scale.onOneCore = true;
  between.scale.ranks = between.scale.ranksPerHost = scale.cores;
  between.scale.lanes = ranksEach;
  if (split) between.request.bytes /= size_t(ranksEach);
  if (!split) within.request.bytes *= size_t(scale.cores);
  stages = {within, between};
}

// Inside the hosts two-shot or direct, between them a ring of one rank a host, or of two an exchange; parts of ranks
// travel host by host.
bool stagesOfHierarchical(const Request& request, const Scale& scale, std::array<Stage, 2>& stages) {
  const bool split = request.collective == Collective::kAllReduce, rooted = hasRoot(request.collective);
  if (isOnCores(scale) && !rooted) {
    stagesOnCores(request, scale, stages);
    return true;
  }
  if (!isOnHosts(scale)) return false;
  Stage within{split ? Algorithm::kTwoShot : Algorithm::kDirect, request, scale};
  Stage between{split && scale.hosts == 2 ? Algorithm::kOneShot : Algorithm::kRing, request, scale};
  within.scale.ranks = scale.ranksPerHost, within.scale.hosts = 1;
  between.scale.ranks = scale.hosts, between.scale.ranksPerHost = 1;
  between.scale.ranksPerCore = std::max(1.0, scale.ranksPerCore / scale.ranksPerHost);  // hosts may share a machine
  if (!split && !rooted) {
    within.request.bytes *= size_t(scale.hosts);
    between.request.bytes *= size_t(scale.ranksPerHost);
  }
  stages = {within, between};
  return true;
}

// As exchanges at a distance that doubles, where it is not looked at as its two stages.
Workload workloadOfHierarchical(const Request& request, const Scale& scale) {
  const Pattern pattern = doubling(scale);
  if (!hasRoot(request.collective)) return inParts(request, scale, pattern);
  const double part = double(scale.ranks - 1) / scale.ranks * double(request.bytes);
  return evenly(scale, pattern, 2, 2 * part, request.collective == Collective::kReduce ? part : 0);
}

}  // namespace

constinit const AlgorithmRow rows::kHierarchical{.name = "hierarchical",
                                                 .collectives = kHierarchicalHas,
                                                 .build = buildHierarchical,
                                                 .workload = workloadOfHierarchical,
                                                 .stages = stagesOfHierarchical,
                                                 .objection = objectionToHierarchical};

}  // namespace tutti::schedule

// Hierarchical: directly within a host, along rings (one per lane) or trees between hosts.
#include <algorithm>

#include "schedule/grid.h"
#include "schedule/tree.h"

namespace tutti::schedule {
namespace {

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

}  // namespace

Schedule buildHierarchical(const Shape& shape, int rank) {
  const Hosts hosts = Hosts::of(shape.groupOf, shape.size);
  if (!hasRoot(shape.collective)) return buildOnGrid(Algorithm::kHierarchical, shape, rank, hosts);
  Builder builder(Algorithm::kHierarchical, shape, rank, SegmentMap::kSplit, kTrees);
  const TreeTeam team = teamOf(hosts, shape.root, rank);
  if (shape.collective == Collective::kBroadcast) {
    broadcastOnTrees(builder, team);
  } else {
    reduceOnTrees(builder, team);
  }
  return builder.finish(1);
}

}  // namespace tutti::schedule

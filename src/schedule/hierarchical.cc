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

// Which ranks are together, in few bits: ranks that see it differently find out by their slots. That is the second
// look: what it is made of, the cards and TUTTI_GROUP_SIZE, was handed to all alike or compared in full when they
// joined (comm/agreement.cc), so that two that have one digest by chance are refused there.
uint16_t digestOf(const Hosts& hosts, int size) {
  uint32_t hash = 0x811c9dc5;  // FNV-1a
  for (int rank = 0; rank < size; ++rank) hash = (hash ^ static_cast<uint32_t>(hosts.hostOf(rank))) * 0x01000193;
  return static_cast<uint16_t>((hash ^ hash >> 9 ^ hash >> 18) & Schedule::kMostGrouping);
}

Schedule buildOnHosts(const Shape& shape, int rank, const Hosts& hosts) {
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

}  // namespace

Schedule buildHierarchical(const Shape& shape, int rank) {
  const Hosts hosts = Hosts::of(shape.groupOf, shape.size);
  Schedule schedule = buildOnHosts(shape, rank, hosts);
  schedule.grouping = digestOf(hosts, shape.size);
  return schedule;
}

}  // namespace tutti::schedule

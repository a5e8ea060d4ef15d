// The machines of a communicator as plans see them. Pure: every rank computes the same from what all know.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "link/registry.h"
#include "plan/plan.h"
#include "topology/peer_info.h"

namespace tutti::comm {

// For each rank the number of its host, real or, where `groupSize` is not 0, virtual.
std::vector<int> groupsOf(std::span<const topology::PeerInfo> infos, int groupSize);
// Where ranks are: what their rows are made of.
struct Placement {
  std::vector<int> groupOf{};  // what groupsOf() returned
  // The place of each in a broadcast's chain that follows the cores, so that ranks which share one are next to each
  // other, as groups are, and machines; empty: as the groups have them.
  std::vector<int> chain{};
  bool bothWays = false;      // from its root, as schedule::Shape has it
  std::vector<int> coreOf{};  // of ranks that share cores evenly, the hosts of the hierarchical algorithm; else empty
  int cores() const;          // as schedule::Scale has them
};
// `machine`: what machineOf() returned.
Placement placementOf(std::span<const topology::PeerInfo> infos, std::vector<int> groups,
                      const plan::ClusterModel& machine);

// What plans go by between two ranks, and where they have it from.
struct PricedWay {
  std::string_view transport;  // "": nothing is between them
  plan::LinkCost cost;
  std::string by;  // "by the profile"
};
PricedWay pricedWay(std::span<const topology::PeerInfo> infos, int a, int b, const link::Registry& registry,
                    const plan::Profile& prices);

// `groups`: what groupsOf() returned.
plan::ClusterModel machineOf(std::span<const topology::PeerInfo> infos, const std::vector<int>& groups,
                             const link::Registry& registry, const plan::Profile& prices);

}  // namespace tutti::comm

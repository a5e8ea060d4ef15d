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

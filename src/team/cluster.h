// The machines of a communicator as plans see them. Pure: every rank computes the same from what all know.
#pragma once
#include <span>
#include <vector>

#include "link/registry.h"
#include "plan/plan.h"
#include "topology/peer_info.h"

namespace tutti::comm {

// For each rank the number of its host, real or, where `groupSize` is not 0, virtual.
std::vector<int> groupsOf(std::span<const topology::PeerInfo> infos, int groupSize);
// `groups`: what groupsOf() returned.
plan::ClusterModel machineOf(std::span<const topology::PeerInfo> infos, const std::vector<int>& groups,
                             const link::Registry& registry, const plan::Profile& prices);

}  // namespace tutti::comm

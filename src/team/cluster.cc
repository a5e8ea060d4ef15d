#include "team/cluster.h"

#include <algorithm>
#include <map>

namespace tutti::comm {
namespace {

using topology::PeerInfo;

// In the order of their lowest rank: the same on every rank.
std::vector<int> hostNumbers(std::span<const PeerInfo> infos) {
  std::map<uint64_t, int> numbers;
  std::vector<int> hosts;
  for (const PeerInfo& info : infos)
    hosts.push_back(numbers.emplace(info.hostId, static_cast<int>(numbers.size())).first->second);
  return hosts;
}

// By the profile, where it knows the transport; else what the transport says of itself.
plan::LinkCost costOf(const PeerInfo& a, const PeerInfo& b, const link::Registry& registry,
                      const plan::Profile& prices) {
  const auto candidates = registry.candidates(a, b);
  if (candidates.empty()) return prices.shm;
  const bool sameHost = a.hostId == b.hostId;
  if (const auto* known = plan::linkOf(prices, candidates.front()->name(), sameHost)) return *known;
  const link::Reachability reach = candidates.front()->reach(a, b);
  return plan::LinkCost{reach.latencyUs, reach.bandwidthGBs};
}

void countRanks(plan::ClusterModel& machine, std::span<const PeerInfo> infos, const std::vector<int>& groups) {
  std::map<int, int> ranksOf;
  std::map<int, uint32_t> coresOf;
  for (size_t r = 0; r < groups.size(); ++r) {
    ++ranksOf[groups[r]];
    coresOf[groups[r]] = std::max(coresOf[groups[r]], infos[r].cores);
  }
  machine.hosts = static_cast<int>(ranksOf.size());
  for (const auto& [host, ranks] : ranksOf) {
    machine.ranksPerHost = std::max(machine.ranksPerHost, ranks);
    machine.ranksPerCore = std::max(machine.ranksPerCore, double(ranks) / std::max(1u, coresOf[host]));
  }
}

}  // namespace

std::vector<int> groupsOf(std::span<const PeerInfo> infos, int groupSize) {
  if (groupSize == 0) return hostNumbers(infos);
  std::vector<int> groups;
  for (size_t r = 0; r < infos.size(); ++r) groups.push_back(static_cast<int>(r) / groupSize);
  return groups;
}

// The costs of the first pair of each kind stand for all of them.
plan::ClusterModel machineOf(std::span<const PeerInfo> infos, const std::vector<int>& groups,
                             const link::Registry& registry, const plan::Profile& prices) {
  plan::ClusterModel machine;
  machine.prices = prices;
  machine.local = prices.shm, machine.remote = prices.tcpNetwork;
  machine.ranks = static_cast<int>(infos.size());
  machine.slotRoom = link::Edge{}.slotBytes;
  countRanks(machine, infos, groups);
  const auto fellow = std::find(groups.begin() + 1, groups.end(), groups[0]);
  if (fellow != groups.end())
    machine.local = costOf(infos[0], infos[static_cast<size_t>(fellow - groups.begin())], registry, prices);
  const auto other = std::find_if(groups.begin() + 1, groups.end(), [&](int group) { return group != groups[0]; });
  if (other != groups.end())
    machine.remote = costOf(infos[0], infos[static_cast<size_t>(other - groups.begin())], registry, prices);
  return machine;
}

}  // namespace tutti::comm

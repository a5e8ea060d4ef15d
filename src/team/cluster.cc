#include "team/cluster.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/costs.h"
#include "link/plugin.h"

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

// What the interfaces of all ranks carry of a message, GB/s: the slowest of those whose speed is known; 0 where none
// is.
double slowest(std::span<const PeerInfo> infos, uint32_t PeerInfo::*megabits) {
  uint32_t least = 0;
  for (const PeerInfo& info : infos)
    if (info.*megabits != 0 && (least == 0 || info.*megabits < least)) least = info.*megabits;
  return least / 8e3 * costs::kNetworkShare;
}

bool areOfOneMachine(std::span<const PeerInfo> infos) {
  return std::ranges::all_of(infos, [&](const PeerInfo& one) { return machineIdOf(one) == machineIdOf(infos[0]); });
}

// A price that was measured, or written into a profile by hand, is not the shipped one. Hosts of one machine, as
// containers are, hear of each other as soon as its processes do, whatever their devices let through.
PricedWay overNetwork(std::string_view name, std::span<const PeerInfo> infos, const plan::Profile& prices) {
  plan::LinkCost known = prices.tcpNetwork;
  if (known.bandwidthGBs != costs::kTcpNetwork.bandwidthGBs) return {name, known, "by the profile"};
  if (known.latencyUs == costs::kTcpNetwork.latencyUs && areOfOneMachine(infos))
    known.latencyUs = prices.tcpLoopback.latencyUs;
  // A core moves no more than it does over loopback.
  const double carried = std::min(slowest(infos, &PeerInfo::networkMegabits), prices.tcpLoopback.bandwidthGBs);
  if (carried <= 0) return {name, known, "as shipped: the speed of the network is not known"};
  return {name, {known.latencyUs, carried}, "by the speed of the network interfaces"};
}

using Loads = std::map<uint64_t, topology::CoreLoad>;  // of machines

Loads loadsOf(std::span<const PeerInfo> infos) {
  Loads loads;
  for (const PeerInfo& info : infos) loads[machineIdOf(info)].add(info);
  return loads;
}

// Of the ranks with the least company.
double leastRanksPerCore(std::span<const PeerInfo> infos) {
  const Loads loads = loadsOf(infos);
  double least = static_cast<double>(infos.size());
  for (const PeerInfo& info : infos) least = std::min(least, loads.at(machineIdOf(info)).of(info));
  return least;
}

void countRanks(plan::ClusterModel& machine, std::span<const PeerInfo> infos, const std::vector<int>& groups) {
  const Loads loads = loadsOf(infos);
  std::map<int, int> ranksOf;
  for (const int group : groups) ++ranksOf[group];
  machine.hosts = static_cast<int>(ranksOf.size());
  machine.machines = static_cast<int>(loads.size());
  for (const auto& [host, ranks] : ranksOf) machine.ranksPerHost = std::max(machine.ranksPerHost, ranks);
  for (const PeerInfo& info : infos)
    machine.ranksPerCore = std::max(machine.ranksPerCore, loads.at(machineIdOf(info)).of(info));
}

struct GroupPlace {
  size_t machine;  // of its first rank, numbered as they come
  int core;        // the first of any of its ranks
};

std::map<int, GroupPlace> placesOf(std::span<const PeerInfo> infos, const std::vector<int>& groups) {
  std::map<uint64_t, size_t> machines;
  std::map<int, GroupPlace> places;
  for (size_t r = 0; r < infos.size(); ++r) {
    const size_t machine = machines.emplace(machineIdOf(infos[r]), machines.size()).first->second;
    const int core = topology::firstCoreOf(infos[r]);
    GroupPlace& place = places.emplace(groups[r], GroupPlace{machine, core}).first->second;
    place.core = std::min(place.core, core);
  }
  return places;
}

// The cores of the one host there is, numbered as ranks come to them, where each rank is kept on one, and each has as
// many ranks as the others, and enough: over sockets four to a core gained by it, two to a core did not
// (docs/decisions/0059).
std::vector<int> evenCoresOf(std::span<const PeerInfo> infos, const plan::ClusterModel& machine) {
  constexpr int kLeastRanksEach = 4;
  if (machine.hosts > 1 || machine.machines > 1 || machine.localOver != "tcp") return {};
  std::map<int, int> numbers, ranksOn;
  std::vector<int> cores;
  for (const PeerInfo& info : infos) {
    const int core = topology::onlyCoreOf(info);
    if (core < 0) return {};
    cores.push_back(numbers.emplace(core, static_cast<int>(numbers.size())).first->second);
    ++ranksOn[core];
  }
  const int each = ranksOn.begin()->second;
  const bool even = std::ranges::all_of(ranksOn, [&](const auto& on) { return on.second == each; });
  return even && ranksOn.size() > 1 && each >= kLeastRanksEach ? cores : std::vector<int>();
}

}  // namespace

int Placement::cores() const { return coreOf.empty() ? 0 : std::ranges::max(coreOf) + 1; }

// By the profile, where it knows the transport; else what the transport says of itself.
PricedWay pricedWay(std::span<const PeerInfo> infos, int a, int b, const link::Registry& registry,
                    const plan::Profile& prices) {
  const PeerInfo &one = infos[static_cast<size_t>(a)], &other = infos[static_cast<size_t>(b)];
  const auto candidates = registry.candidates(one, other);
  if (candidates.empty()) return {"", prices.shm, ""};
  const std::string_view name = candidates.front()->name();
  const bool sameHost = one.hostId == other.hostId;
  if (const auto* known = plan::linkOf(prices, name, sameHost)) {
    if (known == &prices.tcpNetwork) return overNetwork(name, infos, prices);
    const plan::Profile shipped;
    return {name, *known, *known == *plan::linkOf(shipped, name, sameHost) ? "as shipped" : "by the profile"};
  }
  const link::Reachability reach = candidates.front()->reach(one, other);
  if (const double carried = slowest(infos, &PeerInfo::rdmaMegabits); link::familyOf(name) == "verbs" && carried > 0)
    return {name, {reach.latencyUs, carried}, "by the rates of the RDMA ports"};
  return {name, {reach.latencyUs, reach.bandwidthGBs}, "by the transport's own word"};
}

std::vector<int> groupsOf(std::span<const PeerInfo> infos, int groupSize) {
  if (groupSize == 0) return hostNumbers(infos);
  std::vector<int> groups;
  for (size_t r = 0; r < infos.size(); ++r) groups.push_back(static_cast<int>(r) / groupSize);
  return groups;
}

// Whoever is woken by the rank before it on the same core finds what that has just written in that core's cache, and
// no other processor is to be woken for it: over loopback TCP a chain took up to twice as long where every step of it
// went from one processor to another (docs/decisions/0057). A ring, all of whose ranks hand on at once, did not gain.
// Both ways it goes where no network is on the way, each rank has company on its core, so that what the root has twice
// it does not wait for alone, and either way has two ranks that hand on.
Placement placementOf(std::span<const PeerInfo> infos, std::vector<int> groups, const plan::ClusterModel& machine) {
  constexpr int kLeastBothWays = 6;
  if (machine.ranksPerCore <= 1) return {.groupOf = std::move(groups)};
  const std::map<int, GroupPlace> places = placesOf(infos, groups);
  std::vector<size_t> ranks(infos.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::sort(ranks, {}, [&](size_t rank) {
    const GroupPlace& group = places.at(groups[rank]);
    return std::tuple(group.machine, group.core, groups[rank], topology::firstCoreOf(infos[rank]), rank);
  });
  std::vector<int> chain(ranks.size());
  for (size_t place = 0; place < ranks.size(); ++place) chain[ranks[place]] = static_cast<int>(place);
  const bool bothWays = machine.machines == 1 && machine.ranks >= kLeastBothWays && leastRanksPerCore(infos) >= 2;
  return {std::move(groups), std::move(chain), bothWays, evenCoresOf(infos, machine)};
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
  const auto wayTo = [&](auto rank) {
    return pricedWay(infos, 0, static_cast<int>(rank - groups.begin()), registry, prices);
  };
  if (const auto fellow = std::find(groups.begin() + 1, groups.end(), groups[0]); fellow != groups.end()) {
    const PricedWay way = wayTo(fellow);
    machine.local = way.cost, machine.localOver = way.transport;
  }
  const auto other = std::find_if(groups.begin() + 1, groups.end(), [&](int group) { return group != groups[0]; });
  if (other != groups.end()) machine.remote = wayTo(other).cost;
  return machine;
}

}  // namespace tutti::comm

#include "sim/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/costs.h"
#include "base/error.h"
#include "base/slots.h"
#include "rings/host_links.h"
#include "rings/nics.h"
#include "sim/refuse.h"
#include "topology/paths.h"
#include "topology/speeds.h"

namespace tutti::sim {
namespace {

using topology::DeviceKind;
using topology::Paths;
using topology::PathType;
using topology::System;

// Latencies of a hand-over of a ring's slot are those that NCCL's tuning goes by (src/graph/tuning.cc, protocol
// Simple): over NVLink, over PCI, over a network.
constexpr double kNvlinkUs = 3.4, kPciUs = 5.7, kGpuNetworkUs = 14;
constexpr int kChannelsOnGpu = 4;

// What a GPU of a compute capability adds up: a judgement, a third of its memory's bandwidth (two reads and a write for
// each byte).
constexpr struct {
  int sm;
  double gbs;
} kCombine[] = {{90, 1000}, {86, 230}, {80, 600}, {0, 300}};

double combineGBsOf(int sm) {
  const auto row = std::ranges::find_if(kCombine, [&](const auto& each) { return sm >= each.sm; });
  return row->gbs;
}

void setNics(Cluster& cluster, rings::Nics nics) {
  for (rings::Nic& one : nics.nics) cluster.nics.push_back({std::move(one.name), one.gigabytes});
  cluster.nicOf = std::move(nics.of);
}

void setGpus(Cluster& cluster, const System& system, std::vector<int> gpus, const std::vector<int>& ports) {
  if (cluster.ranksPerHost > static_cast<int>(gpus.size()))
    refuse(fmt::format("{} has {} GPUs, one for each rank: there is no place for {} ranks on a node", cluster.name,
                       gpus.size(), cluster.ranksPerHost));
  if (cluster.ranksPerHost == 0) cluster.ranksPerHost = static_cast<int>(gpus.size());
  const Paths paths(system);
  setNics(cluster, rings::nicsOf(system, paths, gpus, ports));
  gpus.resize(static_cast<size_t>(cluster.ranksPerHost));
  cluster.nicOf.resize(ports.empty() ? 0 : gpus.size());
  const rings::HostLinks links = rings::hostLinks(system, gpus);
  cluster.portGBs = gpus.size() > 1 ? links.pairGBs : topology::kInternalGigabytes;
  cluster.ringGBs = links.ringGBs;
  const auto latencyOf = [](PathType type) { return type > PathType::kC2c ? kPciUs : kNvlinkUs; };
  cluster.localUs = latencyOf(links.among), cluster.ringUs = latencyOf(links.along);
  cluster.remoteUs = kGpuNetworkUs;
  cluster.combineGBs = combineGBsOf(system.devices[gpus[0]].gpu ? system.devices[gpus[0]].gpu->sm : 0);
  cluster.slotBytes = slots::kMostBytesOnGpu;
  cluster.depth = slots::kDepthOnGpu;
  cluster.channels = kChannelsOnGpu;
}

// Memory nodes with cores; some are memory alone. Where a file does not say, it is taken to be usual.
int nodesWithCores(const System& system) {
  const auto hasCores = [&](int node) {
    const std::string& mask = system.devices[node].numa->affinity;
    return mask.empty() || mask.find_first_not_of("0,") != std::string::npos;
  };
  return static_cast<int>(std::ranges::count_if(devicesOf(system, DeviceKind::kNuma), hasCores));
}

// Of a port whose speed is unknown, what was assumed.
double networkOf(const System& system, int port) {
  const auto up = std::ranges::find(system.links, port, &topology::Link::b);
  return up == system.links.end() ? 0 : up->gigabytes;
}

void setCores(Cluster& cluster, const System& system, const std::vector<int>& ports) {
  const int nodes = nodesWithCores(system);
  if (nodes == 0)
    refuse(fmt::format("{} has neither GPUs nor memory nodes with cores, and so nothing that could be a rank",
                       cluster.name));
  if (cluster.ranksPerHost == 0) cluster.ranksPerHost = nodes;
  for (const int port : ports) cluster.nics.push_back({nameOf(system, port), networkOf(system, port)});
  cluster.portGBs = costs::kShm.bandwidthGBs;
  cluster.localUs = costs::kShm.latencyUs;
  cluster.remoteUs = costs::kTcpNetwork.latencyUs;
  cluster.combineGBs = costs::kCombineGBs;
  cluster.slotBytes = slots::kBytes;
  cluster.depth = slots::kDepth;
}

void requireOneHost(const System& system, std::string_view name) {
  const std::vector<int> nodes = devicesOf(system, DeviceKind::kNuma);
  const auto host = [&](int node) { return system.devices[node].numa->host; };
  if (!nodes.empty() && std::ranges::any_of(nodes, [&](int node) { return host(node) != host(nodes.front()); }))
    refuse(fmt::format("{} describes several hosts: give one of them, and how many of it there are", name));
}

// Of several nodes that nothing known joins.
[[noreturn]] void refuseNodes(const System& system, std::string_view name) {
  if (devicesOf(system, DeviceKind::kNic).empty())
    refuse(fmt::format("{} has no NIC: give one node (--nodes 1)", name));
  refuse(
      fmt::format("{} has NICs, but says nothing of their networks (<net>), as files of clouds do: complete it on "
                  "such a machine (tutti-topo show FILE --complete --format xml), or give one node (--nodes 1)",
                  name));
}

}  // namespace

Cluster clusterOf(const System& system, std::string_view name, int hosts, int ranksPerHost) {
  requireOneHost(system, name);
  Cluster cluster;
  cluster.name = name;
  cluster.hosts = hosts;
  cluster.ranksPerHost = ranksPerHost;
  cluster.nics.clear();
  const std::vector<int> gpus = byNumber(system, DeviceKind::kGpu), ports = devicesOf(system, DeviceKind::kPort);
  if (gpus.empty()) {
    setCores(cluster, system, ports);
  } else {
    setGpus(cluster, system, gpus, ports);
  }
  if (ports.empty() && hosts > 1) refuseNodes(system, name);
  if (ports.empty()) cluster.nics = {{std::string(kNoNic)}};
  check(cluster);
  return cluster;
}

void check(const Cluster& cluster) {
  constexpr int kMostRanks = 1 << 20;
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (cluster.hosts < 1 || cluster.ranksPerHost < 1 || cluster.hosts > kMostRanks / cluster.ranksPerHost)
    refuse(fmt::format("{} hosts of {} ranks are no cluster: 1 to {} ranks can be simulated", cluster.hosts,
                       cluster.ranksPerHost, kMostRanks));
  for (const Nic& nic : cluster.nics)
    if (!positive(nic.gbs))
      refuse(
          fmt::format("'{}' has a NIC that carries nothing, {}: give it a bandwidth above 0", cluster.name, nic.name));
  const bool ringMoves = cluster.ringGBs == 0 || positive(cluster.ringGBs);
  if (cluster.nics.empty() || !positive(cluster.portGBs) || !ringMoves || !positive(cluster.combineGBs))
    refuse(fmt::format("'{}' has a link that carries nothing: bandwidths and NICs must be above 0", cluster.name));
  const auto known = [&](int nic) { return nic >= 0 && nic < static_cast<int>(cluster.nics.size()); };
  const bool all = cluster.nicOf.empty() || cluster.nicOf.size() == static_cast<size_t>(cluster.ranksPerHost);
  if (!all || !std::ranges::all_of(cluster.nicOf, known))
    refuse(fmt::format("'{}' has ranks without a NIC: give each one of those that there are", cluster.name));
  constexpr double kLongestUs = 1e9;  // of picoseconds a clock has no more room for very many
  const auto isLatency = [](double us) { return us >= 0 && us <= kLongestUs; };
  if (!isLatency(cluster.localUs) || !isLatency(cluster.remoteUs) || !isLatency(cluster.ringUs))
    refuse(
        fmt::format("'{}' has a latency below 0, or of more than {:g} us: give one between", cluster.name, kLongestUs));
  if (cluster.depth < 1 || cluster.channels < 1 || cluster.channels > 64 || cluster.slotBytes < 64)
    refuse("links have at least one slot of 64 bytes, and there are 1 to 64 channels");
}

}  // namespace tutti::sim

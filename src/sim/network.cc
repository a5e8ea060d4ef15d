#include "sim/network.h"

#include <fmt/format.h>

#include <cmath>

#include "base/costs.h"
#include "base/error.h"
#include "base/slots.h"

namespace tutti::sim {
namespace {

// Bandwidths of NVLink (a GPU of a DGX A100 has 12 links of 20 GB/s, one of an HGX H100 18 of 20.6) and of NICs (12
// GB/s for each 100 Gbit/s), and the latencies of a hand-over of a ring's slot (3.4 and 14 us), are those that NCCL's
// topology and tuning go by (src/graph/topo.h, src/graph/tuning.cc). What a GPU adds up is a judgement, from the
// bandwidth of its memory: two reads and a write for each byte.
constexpr double kNvlinkUs = 3.4, kGpuNetworkUs = 14, kGbsPer100Gbit = 12;

Cluster gpus(std::string_view name, double portGBs, double nicGbit, double combineGBs) {
  Cluster cluster;
  cluster.name = name;
  cluster.ranksPerHost = cluster.nics = 8;
  cluster.portGBs = portGBs;
  cluster.nicGBs = nicGbit / 100 * kGbsPer100Gbit;
  cluster.localUs = kNvlinkUs;
  cluster.remoteUs = kGpuNetworkUs;
  cluster.combineGBs = combineGBs;
  cluster.slotBytes = slots::kMostBytesOnGpu;
  cluster.depth = slots::kDepthOnGpu;
  cluster.channels = 4;
  return cluster;
}

// Ranks on cores, which share their host's memory and one card.
Cluster ethernet() {
  Cluster cluster;
  cluster.name = "ethernet";
  cluster.ranksPerHost = 4;
  cluster.portGBs = costs::kShm.bandwidthGBs;
  cluster.nicGBs = kGbsPer100Gbit;
  cluster.localUs = costs::kShm.latencyUs;
  cluster.remoteUs = costs::kTcpNetwork.latencyUs;
  cluster.combineGBs = costs::kCombineGBs;
  cluster.slotBytes = slots::kBytes;
  cluster.depth = slots::kDepth;
  return cluster;
}

std::vector<Cluster> known() {
  return {gpus("hgx-h100", 18 * 20.6, 400, 1000), gpus("dgx-a100", 12 * 20.0, 200, 600), ethernet()};
}

[[noreturn]] void refuseCluster(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

void check(const Cluster& cluster) {
  constexpr int kMostRanks = 1 << 20;
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (cluster.hosts < 1 || cluster.ranksPerHost < 1 || cluster.hosts > kMostRanks / cluster.ranksPerHost)
    refuseCluster(fmt::format("{} hosts of {} ranks are no cluster: 1 to {} ranks can be simulated", cluster.hosts,
                              cluster.ranksPerHost, kMostRanks));
  if (!positive(cluster.portGBs) || !positive(cluster.nicGBs) || !positive(cluster.combineGBs) || cluster.nics < 1)
    refuseCluster(
        fmt::format("'{}' has a link that carries nothing: bandwidths and NICs must be above 0", cluster.name));
  if (cluster.localUs < 0 || cluster.remoteUs < 0)
    refuseCluster(fmt::format("'{}' has a latency below 0: give 0 or more", cluster.name));
  if (cluster.depth < 1 || cluster.channels < 1 || cluster.channels > 64 || cluster.slotBytes < 64)
    refuseCluster("links have at least one slot of 64 bytes, and there are 1 to 64 channels");
}

}  // namespace

std::vector<std::string_view> clusterNames() { return {"hgx-h100", "dgx-a100", "ethernet"}; }

Cluster clusterByName(std::string_view name, int hosts, int ranksPerHost) {
  for (Cluster& cluster : known()) {
    if (cluster.name != name) continue;
    cluster.hosts = hosts;
    if (ranksPerHost != 0) cluster.ranksPerHost = ranksPerHost;
    check(cluster);
    return cluster;
  }
  std::string names;
  for (const std::string_view each : clusterNames()) names += fmt::format("{}{}", names.empty() ? "" : ", ", each);
  refuseCluster(fmt::format("'{}' is no system; choose one of: {}", name, names));
}

Network::Network(const Cluster& cluster) : cluster_(cluster) {
  check(cluster_);
  perHost_ = 2 * static_cast<uint32_t>(cluster_.ranksPerHost + cluster_.nics);
}

uint32_t Network::port(int rank) const noexcept {
  const int host = rank / cluster_.ranksPerHost, member = rank % cluster_.ranksPerHost;
  return static_cast<uint32_t>(host) * perHost_ + 2 * static_cast<uint32_t>(member);
}

uint32_t Network::nic(int rank) const noexcept {
  const int host = rank / cluster_.ranksPerHost, member = rank % cluster_.ranksPerHost;
  const auto own = static_cast<int>(int64_t{member} * cluster_.nics / cluster_.ranksPerHost);
  return static_cast<uint32_t>(host) * perHost_ + 2 * static_cast<uint32_t>(cluster_.ranksPerHost + own);
}

Path Network::path(int from, int to) const noexcept {
  const auto ps = [](double us) { return static_cast<Picoseconds>(us * 1e6 + 0.5); };
  if (from / cluster_.ranksPerHost == to / cluster_.ranksPerHost)
    return {ps(cluster_.localUs), port(from), port(to) + 1};
  return {ps(cluster_.remoteUs), nic(from), nic(to) + 1};
}

double Network::gbsOf(uint32_t resource) const noexcept {
  const bool ofRank = resource % perHost_ < 2 * static_cast<uint32_t>(cluster_.ranksPerHost);
  return ofRank ? cluster_.portGBs : cluster_.nicGBs;
}

std::string Network::nameOf(uint32_t resource) const {
  const uint32_t host = resource / perHost_, place = resource % perHost_ / 2;
  const auto ranks = static_cast<uint32_t>(cluster_.ranksPerHost);
  const char* direction = resource % 2 == 0 ? "out" : "in";
  if (place < ranks) return fmt::format("port of rank {}, {}", host * ranks + place, direction);
  return fmt::format("NIC {} of host {}, {}", place - ranks, host, direction);
}

}  // namespace tutti::sim

#include "sim/network.h"

#include <fmt/format.h>

namespace tutti::sim {

Network::Network(const Cluster& cluster) : cluster_(cluster) {
  check(cluster_);
  const int nics = static_cast<int>(cluster_.nics.size());
  if (cluster_.nicOf.empty())
    for (int member = 0; member < cluster_.ranksPerHost; ++member)
      cluster_.nicOf.push_back(static_cast<int>(int64_t{member} * nics / cluster_.ranksPerHost));
  perHost_ = 2 * static_cast<uint32_t>(cluster_.ranksPerHost + nics);
}

uint32_t Network::port(int rank) const noexcept {
  const int host = rank / cluster_.ranksPerHost, member = rank % cluster_.ranksPerHost;
  return static_cast<uint32_t>(host) * perHost_ + 2 * static_cast<uint32_t>(member);
}

uint32_t Network::nic(int rank) const noexcept {
  const int host = rank / cluster_.ranksPerHost, member = rank % cluster_.ranksPerHost;
  const int own = cluster_.nicOf[static_cast<size_t>(member)];
  return static_cast<uint32_t>(host) * perHost_ + 2 * static_cast<uint32_t>(cluster_.ranksPerHost + own);
}

Path Network::path(int from, int to) const noexcept {
  const auto ps = [](double us) { return static_cast<Picoseconds>(us * 1e6 + 0.5); };
  if (from / cluster_.ranksPerHost == to / cluster_.ranksPerHost)
    return {ps(cluster_.localUs), port(from), port(to) + 1};
  return {ps(cluster_.remoteUs), nic(from), nic(to) + 1};
}

double Network::gbsOf(uint32_t resource) const noexcept {
  const uint32_t place = resource % perHost_ / 2, ranks = static_cast<uint32_t>(cluster_.ranksPerHost);
  return place < ranks ? cluster_.portGBs : cluster_.nics[place - ranks].gbs;
}

std::string Network::nameOf(uint32_t resource) const {
  const uint32_t host = resource / perHost_, place = resource % perHost_ / 2;
  const auto ranks = static_cast<uint32_t>(cluster_.ranksPerHost);
  const char* direction = resource % 2 == 0 ? "out" : "in";
  if (place < ranks) return fmt::format("port of rank {}, {}", host * ranks + place, direction);
  return fmt::format("{} of host {}, {}", cluster_.nics[place - ranks].name, host, direction);
}

Picoseconds Network::combineTime(uint32_t bytes, int sources) const noexcept {
  return timeOf(double(bytes) * (sources - 1) * cluster_.channels, cluster_.combineGBs);
}

}  // namespace tutti::sim

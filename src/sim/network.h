// The resources of a cluster, which traffic passes one slot at a time, and what lies between two ranks.
//
// Every rank has a port inside its host, and every host has NICs; each is two resources, one a direction. The switches
// behind them are taken to carry whatever the ports and the NICs can send.
#pragma once
#include <cstdint>
#include <string>

#include "sim/cluster.h"

namespace tutti::sim {

using Picoseconds = uint64_t;

// What a slot passes, one after the other.
struct Path {
  Picoseconds latency = 0;
  uint32_t out = 0, in = 0;
};

class Network {
 public:
  // Throws Error(kInvalidArgument) as check() does.
  explicit Network(const Cluster& cluster);

  const Cluster& cluster() const noexcept { return cluster_; }
  Path path(int from, int to) const noexcept;
  uint32_t resources() const noexcept { return static_cast<uint32_t>(cluster_.hosts) * perHost_; }
  uint32_t resourcesOfHost() const noexcept { return perHost_; }
  // The same resource of host 0, where one host stands for all.
  uint32_t onFirstHost(uint32_t resource) const noexcept { return resource % perHost_; }
  double gbsOf(uint32_t resource) const noexcept;
  std::string nameOf(uint32_t resource) const;
  // How long a step keeps its lane that adds up so many bytes of so many sources. A copy is free; and the lanes of a
  // rank share what it can add up.
  Picoseconds combineTime(uint32_t bytes, int sources) const noexcept;

 private:
  uint32_t port(int rank) const noexcept;
  uint32_t nic(int rank) const noexcept;

  Cluster cluster_;
  uint32_t perHost_;
};

// A byte at 1 GB/s takes a nanosecond.
inline Picoseconds timeOf(double bytes, double gbs) noexcept {
  return static_cast<Picoseconds>(bytes * 1000 / gbs + 0.5);
}

}  // namespace tutti::sim

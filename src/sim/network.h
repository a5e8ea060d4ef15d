// A cluster that need not be there: hosts of equal size, what its links carry, and what traffic between two ranks
// passes.
//
// Every rank has a port inside its host, and every host has NICs, which its ranks share evenly; each is two resources,
// one a direction. The switches behind them are taken to carry whatever the ports and the NICs can send.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::sim {

using Picoseconds = uint64_t;

struct Cluster {
  std::string name;
  int hosts = 1, ranksPerHost = 1;
  double portGBs = 1;                // of one rank inside its host, in each direction
  int nics = 1;                      // of a host
  double nicGBs = 1;                 // of one NIC, in each direction
  double localUs = 0, remoteUs = 0;  // from the last byte's departure until the receiver may take it
  double combineGBs = 1e6;           // what a rank adds up a second, of each further source
  uint32_t slotBytes = 64 << 10;     // of a link, of which there are so many:
  uint32_t depth = 8;
  int channels = 1;

  int ranks() const noexcept { return hosts * ranksPerHost; }
};

// Names of the clusters that are known, and one of them; with 0 as `ranksPerHost` it has as many as such a host has.
std::vector<std::string_view> clusterNames();
// Throws Error(kInvalidArgument) for another name, or for less than one host.
Cluster clusterByName(std::string_view name, int hosts, int ranksPerHost = 0);

// What a slot passes, one after the other.
struct Path {
  Picoseconds latency = 0;
  uint32_t out = 0, in = 0;
};

class Network {
 public:
  // Throws Error(kInvalidArgument) where a number makes no sense.
  explicit Network(const Cluster& cluster);

  const Cluster& cluster() const noexcept { return cluster_; }
  Path path(int from, int to) const noexcept;
  uint32_t resources() const noexcept { return static_cast<uint32_t>(cluster_.hosts) * perHost_; }
  // The same resource of host 0, where one host stands for all.
  uint32_t onFirstHost(uint32_t resource) const noexcept { return resource % perHost_; }
  double gbsOf(uint32_t resource) const noexcept;
  std::string nameOf(uint32_t resource) const;

 private:
  uint32_t port(int rank) const noexcept;
  uint32_t nic(int rank) const noexcept;

  Cluster cluster_;
  uint32_t perHost_;
};

inline Picoseconds timeOf(double bytes, double gbs) noexcept {
  return static_cast<Picoseconds>(bytes * 1000 / gbs + 0.5);
}

}  // namespace tutti::sim

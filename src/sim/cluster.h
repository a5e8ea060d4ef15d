// A cluster that need not be there: hosts of equal size, and what their links carry.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/system.h"

namespace tutti::sim {

// A host's way into the network: one port, or those that one rank has to itself.
struct Nic {
  std::string name;
  double gbs = 1;  // GB/s in each direction
};

// The name of what a host without a NIC has in place of one: nothing is ever sent there.
inline constexpr std::string_view kNoNic = "no NIC";

struct Cluster {
  std::string name;
  int hosts = 1, ranksPerHost = 1;
  double portGBs = 1;                // of one rank inside its host, in each direction
  double ringGBs = 0;                // the same to the next in a ring's order; 0: as to any other
  std::vector<Nic> nics{{"NIC 0"}};  // of a host
  std::vector<int> nicOf;            // of each rank of a host, a position in `nics`; empty: evenly
  double localUs = 0, remoteUs = 0;  // from the last byte's departure until the receiver may take it
  double ringUs = 0;                 // as localUs, where ringGBs counts
  double combineGBs = 1e6;           // what a rank adds up a second, of each further source
  uint32_t slotBytes = 64 << 10;     // of a link, of which there are so many:
  uint32_t depth = 8;
  int channels = 1;

  int ranks() const noexcept { return hosts * ranksPerHost; }
};

// Hosts of that system. A rank is a GPU, in the order of their numbers; where there are none, the cores of a memory
// node, which share all NICs. 0 as `ranksPerHost`: as many as there are. Bandwidths are those of the ways that data
// takes: between ranks the least of any two GPUs (rings::HostLinks), to a NIC the least of those GPUs that it is
// nearest to. Throws Error(kInvalidArgument) for less than one host, more ranks than GPUs, several hosts that have no
// NIC, and a system that is several hosts itself or has nothing that could be a rank.
Cluster clusterOf(const topology::System& system, std::string_view name, int hosts, int ranksPerHost = 0);

// Throws Error(kInvalidArgument) where a number makes no sense.
void check(const Cluster& cluster);

}  // namespace tutti::sim

// This host's cores and memory nodes, as far as the calling process may use them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::topology {

// A NUMA node with at least one usable core; `cores` are the system's numbers of processing units, ascending.
struct MemoryNode {
  int number = 0;
  uint64_t bytes = 0;  // of memory; 0 when unknown
  std::vector<int> cores;
};

// A value: made once, then plain data that any thread may read.
struct HostMachine {
  std::vector<int> cores;         // processing units in this process's affinity mask, ascending; never empty
  int physicalCores = 1;          // cores behind them: fewer than processing units with hyper-threading
  std::vector<MemoryNode> nodes;  // never empty; together they hold every one of `cores` once
};

// Asks hwloc for processors and memory nodes (no devices) of the calling process's affinity mask. Takes milliseconds,
// and the more the more cores there are: hwloc reads some thirty files of each. Throws
// nothing: on a system that tells nothing (a container without /sys) it is one node that holds the cores of the
// affinity mask.
HostMachine detectMachine();

// What a rank tells of itself: on which cores the calling process may run, and the memory node that they are of; -1
// where they are of several. From a file and one a memory node, since every process of a job asks as it starts. Throws
// nothing, as detectMachine().
struct OwnCores {
  std::vector<int> numbers;  // in ascending order; one at least
  int node = 0;
};
OwnCores ownCores();

// As detectMachine, of a machine described in hwloc's synthetic notation ("numa:2 l3:1 l2:4 core:1 pu:2"), restricted
// to no affinity mask. For tests and what-if questions. Throws Error(kInvalidArgument) for a text that hwloc does not
// understand.
HostMachine describeMachine(const std::string& synthetic);

}  // namespace tutti::topology

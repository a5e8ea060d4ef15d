// What all who ask hwloc have in common.
#pragma once
#include <hwloc.h>

#include <memory>

#include "process/fork.h"

namespace tutti::topology {

// Held while hwloc is asked: it has a mutex of its own, which a fork would leave to the child as it finds it.
extern fork::Mutex inHwloc;

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const noexcept { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, DestroyTopology>;

}  // namespace tutti::topology

// Clusters of the systems that are known by name.
#pragma once
#include "catalog/known_systems.h"
#include "sim/cluster.h"

namespace tutti::sim {

inline Cluster knownCluster(const char* system, int hosts, int ranksPerHost = 0) {
  return clusterOf(topology::makeKnownSystem(system), system, hosts, ranksPerHost);
}

}  // namespace tutti::sim

// Network interfaces as the kernel tells them.
#pragma once
#include "detect/sysfs.h"
#include "topology/system.h"

namespace tutti::detect {

// In Mbit/s; 0 where it is unknown, for which drivers say -1.
int64_t speedOf(const Sysfs& sysfs, const std::string& name);

// Adds the speed of each, and takes out those that are down, and those that only stand on others (bonds, bridges, a
// hypervisor's interface whose packets go through a virtual function). Where none is left, as in containers, those that
// are connected to nothing but the host's own network are taken, at the first memory node. For systems without links.
void addInterfaces(topology::System& system, const Sysfs& sysfs);

}  // namespace tutti::detect

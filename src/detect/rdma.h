// RDMA devices as the kernel tells them.
#pragma once
#include "detect/sysfs.h"
#include "topology/system.h"

namespace tutti::detect {

// Adds to each RDMA device's ports their rate, their layer and their addresses, and takes out those that are not
// active. For systems without links.
void addRdma(topology::System& system, const Sysfs& sysfs);

}  // namespace tutti::detect

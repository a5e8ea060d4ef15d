// Virtual functions (SR-IOV): parts of a device that look like devices of their own.
#pragma once
#include "detect/sysfs.h"
#include "topology/system.h"

namespace tutti::detect {

// Takes out virtual functions beside their own device, whose wire they share, and remarks that. Where the device itself
// is not to be used, as in virtual machines and containers that were given one of them, they stay. For systems without
// links, and without NICs that are down.
void removeVirtualFunctions(topology::System& system, const Sysfs& sysfs);

}  // namespace tutti::detect

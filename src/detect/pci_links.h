// PCI links as the kernel tells them: their speed and width.
#pragma once
#include "detect/sysfs.h"
#include "topology/system.h"

namespace tutti::detect {

// Of every device on the bus, what its link can do at most: what it does at the moment is less while a GPU saves power.
// What the kernel does not tell stays as it is.
void addPciLinks(topology::System& system, const Sysfs& sysfs);

}  // namespace tutti::detect

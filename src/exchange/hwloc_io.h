// GPUs, NICs and the switches above them in hwloc's XML.
#pragma once
#include <pugixml.hpp>

#include "exchange/hwloc_nodes.h"
#include "topology/system.h"

namespace tutti::topology {

// Adds them below the memory nodes; also switches with nothing below, and NICs without an interface. Throws
// Error(kInvalidArgument) where there are too many.
void addHwlocDevices(const pugi::xml_node& root, const HwlocNodes& nodes, System& system);

}  // namespace tutti::topology

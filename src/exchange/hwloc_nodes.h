// The memory nodes of hwloc's XML.
#pragma once
#include <map>
#include <pugixml.hpp>

#include "topology/system.h"

namespace tutti::topology {

// Of a node's number, its position among the system's devices. Nodes without cores of their own, such as those of a
// second kind of memory (HBM, CXL), stand for the one whose cores they are beside, or else for the first.
using HwlocNodes = std::map<int, int>;

// Adds them to an empty system, in the order of their numbers; one at least. Throws Error(kInvalidArgument) where two
// have one number, or there are too many.
HwlocNodes addHwlocNodes(const pugi::xml_node& root, System& system);

}  // namespace tutti::topology

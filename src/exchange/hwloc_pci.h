// A device on the bus as hwloc's XML tells it.
#pragma once
#include <pugixml.hpp>

#include "topology/system.h"

namespace tutti::topology {

// Of an <object> that is a PCI device, or a bridge between PCI buses.
Pci pciOfHwloc(const pugi::xml_node& element);

// The same of an <object> that is being written.
void setPciOfHwloc(pugi::xml_node& element, const Pci& pci);

}  // namespace tutti::topology

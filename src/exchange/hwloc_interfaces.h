// Network and RDMA interfaces in hwloc's XML.
#pragma once
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "topology/system.h"

namespace tutti::topology {

// Whether an <object> of the system's (OSDev) is an interface.
bool isInterface(const pugi::xml_node& element);

// The ports of one. RDMA ports that are known not to be active are left out, and that is remarked.
std::vector<Port> portsOfInterface(const pugi::xml_node& element, std::vector<std::string>& remarks);

// Those of a NIC: of its RDMA devices if it has any, else its network interfaces, which share its wire with them.
std::vector<Port> portsOfHwloc(const pugi::xml_node& nic, std::vector<std::string>& remarks);

}  // namespace tutti::topology

// What the system calls devices in hwloc's XML: network and RDMA interfaces, and the numbers of GPUs.
#pragma once
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "topology/system.h"

namespace tutti::topology {

// hwloc's numbers for kinds of objects of the system.
inline constexpr const char *kGpuInterface = "1", *kNetworkInterface = "2", *kRdmaInterface = "3";

// Whether an <object> of the system's (OSDev) is an interface.
bool isInterface(const pugi::xml_node& element);

// The ports of one. RDMA ports that are known not to be active are left out, and that is remarked.
std::vector<Port> portsOfInterface(const pugi::xml_node& element, std::vector<std::string>& remarks);

// Those of a NIC: of its RDMA devices if it has any, else its network interfaces, which share its wire with them.
std::vector<Port> portsOfHwloc(const pugi::xml_node& nic, std::vector<std::string>& remarks);

// Adds what hwloc has to tell of a port to the interface that is being written for it.
void setPortOfHwloc(pugi::xml_node& element, const Port& port);

// The number that NVML gives a GPU; -1 where it is not told.
int gpuNumberOfHwloc(const pugi::xml_node& gpu);

}  // namespace tutti::topology

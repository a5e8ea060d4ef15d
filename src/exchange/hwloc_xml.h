// hwloc's description of a machine in XML, as `lstopo machine.xml` writes it and hwloc_topology_export_xml(), of hwloc
// 1 and 2. It is read here, and not by hwloc, whose reader is made for what hwloc wrote.
#pragma once
#include <pugixml.hpp>
#include <string>

#include "topology/system.h"

namespace tutti::topology {

// Its memory nodes, GPUs, NVSwitches, NICs, and the switches above these, without links. hwloc tells neither NVLinks
// nor the speed of a network, and of a PCI link only what it carries. Throws Error(kInvalidArgument), without a source,
// for what is no such description.
System devicesOfHwlocXml(const pugi::xml_document& document);

// Of a system of one host. It is what hwloc itself reads; NVLinks, the speed of networks, a GPU's generation and what
// only NCCL's format has are lost, and a memory node whose cores are unknown gets one. Throws Error(kInvalidArgument)
// for an empty system, or one of several hosts.
std::string writeHwlocXml(const System& system);

}  // namespace tutti::topology

#include "detect/machine_at_hand.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "detect/gpus.h"
#include "detect/hwloc_machine.h"
#include "detect/interfaces.h"
#include "detect/pci_links.h"
#include "detect/rdma.h"
#include "exchange/hwloc_xml.h"
#include "exchange/xml_text.h"
#include "topology/machine.h"
#include "topology/ports.h"
#include "topology/prune.h"

namespace tutti::detect {
namespace {

using topology::Device;
using topology::DeviceKind;
using topology::System;

// Where hwloc has nothing to say.
System coresOnly() {
  System system;
  for (const topology::MemoryNode& node : topology::detectMachine().nodes) {
    Device& one = system.devices.emplace_back();
    one.kind = DeviceKind::kNuma;
    one.numa.emplace();
    one.numa->number = node.number;
  }
  return system;
}

System byHwloc(const Sources& sources) try {
  const std::string xml = sources.hwlocXml.empty() ? hwlocXmlOfThisMachine() : sources.hwlocXml;
  return topology::devicesOfHwlocXml(topology::parseXml(xml, "what hwloc tells of this machine"));
} catch (const Error& error) {
  System system = coresOnly();
  system.remarks.push_back(fmt::format("{}; switches, GPUs and NICs are unknown", error.what()));
  return system;
}

bool hasNvidia(const System& system) {
  return std::any_of(system.devices.begin(), system.devices.end(), [](const Device& one) {
    return one.kind == DeviceKind::kGpu && one.pci && one.pci->vendor == "0x10de";
  });
}

// Nobody misses NVML on a host without NVIDIA's GPUs.
void byNvml(System& system, const char* library) {
  std::vector<std::string> remarks;
  addGpus(system, seenByNvml(library, remarks));
  if (hasNvidia(system)) system.remarks.insert(system.remarks.end(), remarks.begin(), remarks.end());
}

void sayWhatIsMissing(System& system) {
  if (devicesOf(system, DeviceKind::kNic).empty()) system.remarks.emplace_back("no NIC that is up was found");
}

}  // namespace

System detectDevices(const Sources& sources) {
  const Sysfs sysfs(sources.root);
  System system = byHwloc(sources);
  for (Device& one : system.devices)
    if (one.port) one.port->number = -1;
  addPciLinks(system, sysfs);
  addRdma(system, sysfs);
  addInterfaces(system, sysfs);
  byNvml(system, sources.nvml);
  removeIdle(system);
  numberPorts(system);
  sayWhatIsMissing(system);
  return system;
}

System detectSystem(const Sources& sources) {
  System system = detectDevices(sources);
  connect(system);
  return system;
}

}  // namespace tutti::detect

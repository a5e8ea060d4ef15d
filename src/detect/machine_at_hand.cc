#include "detect/machine_at_hand.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "detect/functions.h"
#include "detect/gpus.h"
#include "detect/hwloc_machine.h"
#include "detect/interfaces.h"
#include "detect/pci_links.h"
#include "detect/rdma.h"
#include "exchange/hwloc_sets.h"
#include "exchange/hwloc_xml.h"
#include "exchange/xml_text.h"
#include "topology/bus_id.h"
#include "topology/machine.h"
#include "topology/ports.h"
#include "topology/prune.h"

namespace tutti::detect {
namespace {

using topology::Device;
using topology::DeviceKind;
using topology::System;

constexpr const char *kPci = "/sys/bus/pci/devices", *kNet = "/sys/class/net";

// Where hwloc has nothing to say.
System coresOnly() {
  System system;
  for (const topology::MemoryNode& node : topology::detectMachine().nodes) {
    Device& one = system.devices.emplace_back();
    one.kind = DeviceKind::kNuma;
    one.numa.emplace();
    one.numa->number = node.number;
    one.numa->affinity = topology::affinityOf(topology::setOf(node.cores));
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

std::vector<int> nvidiaGpus(const System& system) {
  std::vector<int> found = devicesOf(system, DeviceKind::kGpu);
  std::erase_if(found, [&](int gpu) { return system.devices[gpu].pci->vendor != "0x10de"; });
  return found;
}

std::vector<std::string> unseenOf(const System& system, const std::vector<SeenGpu>& seen) {
  std::vector<std::string> unseen;
  for (const int gpu : nvidiaGpus(system)) {
    const auto busId = topology::parseBusId(system.devices[gpu].pci->busId);
    const auto same = [&](const SeenGpu& one) { return topology::parseBusId(one.busId) == busId; };
    if (std::none_of(seen.begin(), seen.end(), same)) unseen.push_back(nameOf(system, gpu));
  }
  return unseen;
}

// Nobody misses NVML on a host without NVIDIA's GPUs.
void byNvml(System& system, const char* library) {
  const bool wanted = !nvidiaGpus(system).empty();
  std::vector<std::string> remarks;
  const std::vector<SeenGpu> seen = seenByNvml(library, remarks);
  addGpus(system, seen);
  if (wanted || !seen.empty()) system.remarks.insert(system.remarks.end(), remarks.begin(), remarks.end());
  if (const auto unseen = unseenOf(system, seen); !seen.empty() && !unseen.empty())
    system.remarks.push_back(
        fmt::format("NVML does not show {}: it has failed, or this container may not use it", fmt::join(unseen, ", ")));
}

void sayWhatIsMissing(System& system, const Sysfs& sysfs) {
  if (!sysfs.has(kPci) && !sysfs.has(kNet))
    system.remarks.emplace_back(
        "/sys tells of no devices here, as in some containers: memory nodes, switches, GPUs and NICs are unknown");
  else if (devicesOf(system, DeviceKind::kNic).empty())
    system.remarks.emplace_back("no NIC that is up was found");
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
  removeVirtualFunctions(system, sysfs);
  byNvml(system, sources.nvml);
  removeIdle(system);
  numberPorts(system);
  sayWhatIsMissing(system, sysfs);
  return system;
}

System detectSystem(const Sources& sources) {
  System system = detectDevices(sources);
  connect(system);
  return system;
}

}  // namespace tutti::detect

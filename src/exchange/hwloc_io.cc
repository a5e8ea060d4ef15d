#include "exchange/hwloc_io.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "exchange/hwloc_interfaces.h"
#include "exchange/hwloc_pci.h"
#include "exchange/hwloc_sets.h"
#include "exchange/xml_attributes.h"
#include "topology/pci_kinds.h"

namespace tutti::topology {
namespace {

std::string_view typeOf(const pugi::xml_node& element) { return element.attribute("type").value(); }

bool isHostBridge(const pugi::xml_node& element) {
  return element.attribute("bridge_type").value() == std::string_view("0-1");
}

class Devices {
 public:
  Devices(const HwlocNodes& nodes, System& system) : nodes_(nodes), system_(system) {}
  // Of a processor's part, or the machine.
  void below(const pugi::xml_node& part);

 private:
  // Where something on the bus is: below which device, and how many bridges are between.
  struct Place {
    int parent, bridges;
  };
  int add(DeviceKind kind, int parent);
  void remark(std::string text) { system_.remarks.push_back(std::move(text)); }
  int nodeOf(const pugi::xml_node& part);
  void io(const pugi::xml_node& element, Place place);
  void all(const pugi::xml_node& element, Place place);
  void bridge(const pugi::xml_node& element, Place place);
  void pciDevice(const pugi::xml_node& element, Place place);
  void ports(const pugi::xml_node& element, int nic);
  void offTheBus(const pugi::xml_node& element, int parent);

  const HwlocNodes& nodes_;
  System& system_;
};

int Devices::add(DeviceKind kind, int parent) {
  if (system_.devices.size() >= kMostDevices)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("it has more than {} devices", kMostDevices));
  Device& one = system_.devices.emplace_back();
  one.kind = kind;
  one.parent = parent;
  return static_cast<int>(system_.devices.size()) - 1;
}

// hwloc has devices below the part of the machine that they are near; that they are near one node may be unknown.
int Devices::nodeOf(const pugi::xml_node& part) {
  std::set<int> near, all;
  for (const auto& [number, node] : nodes_) all.insert(node);
  const auto groups = parseHwlocSet(part.attribute("nodeset").value());
  for (const int member : membersOf(groups.value_or(std::vector<uint32_t>{})))
    if (const auto node = nodes_.find(member); node != nodes_.end()) near.insert(node->second);
  const int found = near.empty() ? *all.begin() : *near.begin();
  if (near.size() != 1 && all.size() > 1)
    remark(fmt::format("hwloc does not tell which memory node the devices of {} are near; {} is assumed",
                       describe(part), nameOf(system_, found)));
  return found;
}

void Devices::below(const pugi::xml_node& part) {
  int node = -1;  // looked up once, and only where there is a device: a set may be long
  for (const pugi::xml_node& child : part.children("object")) {
    const std::string_view type = typeOf(child);
    const bool onTheBus = type == "Bridge" || type == "PCIDev", interface = type == "OSDev" && isInterface(child);
    if ((onTheBus || interface) && node < 0) node = nodeOf(part);
    if (onTheBus)
      io(child, {node, 0});
    else if (interface)
      offTheBus(child, node);
    else if (type != "OSDev")
      below(child);
  }
}

void Devices::io(const pugi::xml_node& element, Place place) {
  if (typeOf(element) == "Bridge") return isHostBridge(element) ? all(element, place) : bridge(element, place);
  if (typeOf(element) == "PCIDev") pciDevice(element, place);
}

void Devices::all(const pugi::xml_node& element, Place place) {
  for (const pugi::xml_node& child : element.children("object")) io(child, place);
}

// The ports of PCI Express are bridges of their own to hwloc: the processor's, and of each switch one up and one down
// to every device. The one up stands for the switch.
void Devices::bridge(const pugi::xml_node& element, Place place) {
  if (place.bridges == 0) return all(element, {place.parent, 1});
  const int device = add(DeviceKind::kPci, place.parent);
  system_.devices[device].pci = pciOfHwloc(element);
  system_.devices[device].pci->classCode = "0x060400";
  all(element, {device, 0});
}

void Devices::pciDevice(const pugi::xml_node& element, Place place) {
  Pci pci = pciOfHwloc(element);
  const auto kind = usefulKind(pci);
  if (!kind || kind == DeviceKind::kPci) return;
  const int device = add(*kind, place.parent);
  Device& one = system_.devices[device];
  one.pci = std::move(pci);
  if (kind == DeviceKind::kGpu) one.gpu.emplace().number = gpuNumberOfHwloc(element);
  if (kind == DeviceKind::kNic) {
    one.nic.emplace();
    ports(element, device);
  }
}

void Devices::ports(const pugi::xml_node& element, int nic) {
  for (Port& port : portsOfHwloc(element, system_.remarks))
    system_.devices[add(DeviceKind::kPort, nic)].port = std::move(port);
}

// Interfaces that a hypervisor gives its machine by another way than the bus.
void Devices::offTheBus(const pugi::xml_node& element, int parent) {
  const int nic = add(DeviceKind::kNic, parent);
  system_.devices[nic].nic.emplace();
  for (Port& port : portsOfInterface(element, system_.remarks))
    system_.devices[add(DeviceKind::kPort, nic)].port = std::move(port);
}

}  // namespace

void addHwlocDevices(const pugi::xml_node& root, const HwlocNodes& nodes, System& system) {
  Devices(nodes, system).below(root);
}

}  // namespace tutti::topology

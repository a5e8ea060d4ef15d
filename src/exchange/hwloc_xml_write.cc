// From a system to hwloc's XML.
#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "exchange/hwloc_interfaces.h"
#include "exchange/hwloc_pci.h"
#include "exchange/hwloc_sets.h"
#include "exchange/hwloc_xml.h"

namespace tutti::topology {
namespace {

constexpr int kMostCores = 8192, kMostNumbers = 1024;

void addInfo(pugi::xml_node& object, const char* name, const std::string& value) {
  if (value.empty() || value == "0") return;
  pugi::xml_node info = object.append_child("info");
  info.append_attribute("name") = name;
  info.append_attribute("value") = value.c_str();
}

// A memory node as hwloc needs one: with a number, and with cores that no other has.
struct Node {
  int device, number;
  std::vector<int> cores;
};

class Nodes {
 public:
  explicit Nodes(const System& system);
  const std::vector<Node>& all() const { return nodes_; }
  std::vector<int> cores() const { return {cores_.begin(), cores_.end()}; }
  std::vector<int> numbers() const { return {numbers_.begin(), numbers_.end()}; }

 private:
  int numberFor(int wanted);
  std::vector<int> coresFor(const std::string& affinity);

  std::vector<Node> nodes_;
  std::set<int> numbers_, cores_;
};

int Nodes::numberFor(int wanted) {
  if (wanted >= kMostNumbers || numbers_.contains(wanted)) wanted = -1;
  for (int free = 0; wanted < 0; ++free)
    if (!numbers_.contains(free)) wanted = free;
  numbers_.insert(wanted);
  return wanted;
}

std::vector<int> Nodes::coresFor(const std::string& affinity) {
  std::vector<int> own;
  for (const int core : membersOf(parseAffinity(affinity).value_or(std::vector<uint32_t>{})))
    if (core < kMostCores && cores_.insert(core).second) own.push_back(core);
  return own;
}

Nodes::Nodes(const System& system) {
  for (const int device : devicesOf(system, DeviceKind::kNuma)) {
    const Numa& numa = *system.devices[device].numa;
    nodes_.push_back({device, numberFor(numa.number), coresFor(numa.affinity)});
  }
  for (Node& node : nodes_) {  // a core for those without
    if (!node.cores.empty()) continue;
    node.cores = {cores_.empty() ? 0 : *cores_.rbegin() + 1};
    cores_.insert(node.cores.front());
  }
}

class Writing {
 public:
  explicit Writing(const System& system) : system_(system), nodes_(system) {}
  std::string run();

 private:
  pugi::xml_node object(pugi::xml_node above, const char* type);
  pugi::xml_node place(pugi::xml_node above, const char* type, int number, const std::vector<int>& cores,
                       const std::vector<int>& numbers);
  pugi::xml_node bridge(pugi::xml_node above, const char* type);
  void node(pugi::xml_node machine, const Node& node);
  void devices(pugi::xml_node above, int parent);
  void device(pugi::xml_node above, int device);
  void osDevices(pugi::xml_node above, int device);
  pugi::xml_node osDevice(pugi::xml_node above, const std::string& name, const char* type);

  const System& system_;
  const Nodes nodes_;
  int objects_ = 0;
};

pugi::xml_node Writing::object(pugi::xml_node above, const char* type) {
  pugi::xml_node added = above.append_child("object");
  added.append_attribute("type") = type;
  added.append_attribute("gp_index") = ++objects_;
  return added;
}

// A part of the machine that has cores and memory.
pugi::xml_node Writing::place(pugi::xml_node above, const char* type, int number, const std::vector<int>& cores,
                              const std::vector<int>& numbers) {
  pugi::xml_node added = object(above, type);
  added.append_attribute("os_index") = number;
  const std::string cpuset = hwlocSetOf(setOf(cores)), nodeset = hwlocSetOf(setOf(numbers));
  for (const char* name : {"cpuset", "complete_cpuset"}) added.append_attribute(name) = cpuset.c_str();
  for (const char* name : {"nodeset", "complete_nodeset"}) added.append_attribute(name) = nodeset.c_str();
  return added;
}

pugi::xml_node Writing::bridge(pugi::xml_node above, const char* type) {
  pugi::xml_node added = object(above, "Bridge");
  added.append_attribute("bridge_type") = type;
  added.append_attribute("depth") = 0;
  added.append_attribute("bridge_pci") = "0000:[00-ff]";
  return added;
}

void Writing::node(pugi::xml_node machine, const Node& node) {
  const Numa& numa = *system_.devices[node.device].numa;
  pugi::xml_node package = place(machine, "Package", node.number, node.cores, {node.number});
  addInfo(package, "Architecture", numa.arch);
  addInfo(package, "CPUVendor", numa.vendor);
  addInfo(package, "CPUFamilyNumber", fmt::to_string(numa.family));
  addInfo(package, "CPUModelNumber", fmt::to_string(numa.model));
  place(package, "NUMANode", node.number, node.cores, {node.number}).append_attribute("local_memory") = 0;
  for (const int core : node.cores) place(package, "PU", core, {core}, {node.number});
  const auto below = childrenOf(system_, node.device);
  const bool bus = std::any_of(below.begin(), below.end(), [&](int child) { return system_.devices[child].pci; });
  if (bus) devices(bridge(package, "0-1"), node.device);
  for (const int child : below)
    if (!system_.devices[child].pci) osDevices(package, child);
}

void Writing::devices(pugi::xml_node above, int parent) {
  for (const int child : childrenOf(system_, parent))
    if (system_.devices[child].pci) device(above, child);
}

// Above every switch there is the port that it is plugged into, a bridge as well.
void Writing::device(pugi::xml_node above, int device) {
  const Device& one = system_.devices[device];
  const bool isSwitch = one.kind == DeviceKind::kPci;
  pugi::xml_node element = isSwitch ? bridge(bridge(above, "1-1"), "1-1") : object(above, "PCIDev");
  Pci pci = *one.pci;
  if (isSwitch) pci.classCode = "0x060400";
  if (pci.classCode.empty()) pci.classCode = one.kind == DeviceKind::kGpu ? "0x030200" : "0x020000";
  setPciOfHwloc(element, pci);
  osDevices(element, device);
  devices(element, device);
}

pugi::xml_node Writing::osDevice(pugi::xml_node above, const std::string& name, const char* type) {
  pugi::xml_node added = object(above, "OSDev");
  added.append_attribute("name") = name.c_str();
  added.append_attribute("osdev_type") = type;
  return added;
}

// Two ports of one RDMA device are one object.
void Writing::osDevices(pugi::xml_node above, int device) {
  const Device& one = system_.devices[device];
  if (one.gpu && one.gpu->number >= 0) osDevice(above, fmt::format("nvml{}", one.gpu->number), kGpuInterface);
  pugi::xml_node last;
  for (const int child : childrenOf(system_, device)) {
    if (!system_.devices[child].port) continue;
    const Port& port = *system_.devices[child].port;
    const bool same = last && port.ofNic >= 0 && last.attribute("name").value() == port.name;
    if (!same) last = osDevice(above, port.name, port.ofNic >= 0 ? kRdmaInterface : kNetworkInterface);
    setPortOfHwloc(last, port);
  }
}

std::string Writing::run() {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  document.append_child(pugi::node_doctype).set_value("topology SYSTEM \"hwloc2.dtd\"");
  pugi::xml_node root = document.append_child("topology");
  root.append_attribute("version") = "2.0";
  pugi::xml_node machine = place(root, "Machine", 0, nodes_.cores(), nodes_.numbers());
  machine.append_attribute("allowed_cpuset") = machine.attribute("cpuset").value();
  machine.append_attribute("allowed_nodeset") = machine.attribute("nodeset").value();
  for (const Node& one : nodes_.all()) node(machine, one);
  std::ostringstream text;
  document.save(text, "  ", pugi::format_default, pugi::encoding_utf8);
  return text.str();
}

void requireOneHost(const System& system) {
  const std::vector<int> nodes = devicesOf(system, DeviceKind::kNuma);
  const auto elsewhere = [&](int node) {
    return system.devices[node].numa->host != system.devices[nodes.front()].numa->host;
  };
  if (nodes.empty() || std::any_of(nodes.begin(), nodes.end(), elsewhere))
    throw Error(ErrorCode::kInvalidArgument, nodes.empty()
                                                 ? "the system is empty: hwloc's format has one memory node at least"
                                                 : "the system is of several hosts, and hwloc's format is for one: "
                                                   "write it in NCCL's");
}

}  // namespace

std::string writeHwlocXml(const System& system) {
  requireOneHost(system);
  return Writing(system).run();
}

}  // namespace tutti::topology

#include "exchange/hwloc_nodes.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "exchange/hwloc_sets.h"
#include "exchange/xml_attributes.h"

namespace tutti::topology {
namespace {

constexpr Bounds kNodeNumbers{0, 1 << 20};

// hwloc tells what is common to all processors at the machine, or at each package.
std::string infoAbove(const pugi::xml_node& element, std::string_view name) {
  for (pugi::xml_node above = element; above; above = above.parent())
    for (const pugi::xml_node& info : above.children("info"))
      if (info.attribute("name").value() == name) return info.attribute("value").value();
  return "";
}

int numberAbove(const pugi::xml_node& element, std::string_view name) {
  const std::string text = infoAbove(element, name);
  int value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9' || value > (1 << 20)) return 0;
    value = value * 10 + (digit - '0');
  }
  return value;
}

// The kernel's names, and those that NCCL has for them.
std::string archOf(const std::string& said) {
  if (said == "aarch64") return "arm64";
  return said.starts_with("ppc64") ? "ppc64" : said;
}

Numa numaOfObject(const pugi::xml_node& element, int number) {
  Numa numa;
  numa.number = number;
  if (const auto groups = parseHwlocSet(element.attribute("cpuset").value())) numa.affinity = affinityOf(*groups);
  numa.arch = archOf(infoAbove(element, "Architecture"));
  numa.vendor = infoAbove(element, "CPUVendor");
  numa.family = numberAbove(element, "CPUFamilyNumber");
  numa.model = numberAbove(element, "CPUModelNumber");
  return numa;
}

// By number.
void collect(const pugi::xml_node& above, std::map<int, pugi::xml_node>& found) {
  for (const pugi::xml_node& child : above.children("object")) {
    if (child.attribute("type").value() == std::string_view("NUMANode")) {
      const int number = static_cast<int>(XmlAttributes(child).number("os_index", kNodeNumbers).value_or(0));
      if (!found.emplace(number, child).second)
        throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: the memory node {} is there twice: give each its own "
                                                             "os_index",
                                                             describe(child), number));
    }
    collect(child, found);
  }
}

int add(System& system, Numa numa) {
  if (system.devices.size() >= kMostNumaNodes)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("it has more than {} memory nodes", kMostNumaNodes));
  Device& device = system.devices.emplace_back();
  device.kind = DeviceKind::kNuma;
  device.numa = std::move(numa);
  return static_cast<int>(system.devices.size()) - 1;
}

std::vector<int> coresOf(const pugi::xml_node& element) {
  return membersOf(parseHwlocSet(element.attribute("cpuset").value()).value_or(std::vector<uint32_t>{}));
}

// The node that one stands for that has no cores of its own; -1 where it has some, or is the first.
int standIn(const std::vector<int>& cores, const std::map<int, int>& byCore) {
  if (byCore.empty()) return -1;
  for (const int core : cores)
    if (!byCore.contains(core)) return -1;
  return byCore.at(cores.empty() ? byCore.begin()->first : cores.front());
}

}  // namespace

HwlocNodes addHwlocNodes(const pugi::xml_node& root, System& system) {
  std::map<int, pugi::xml_node> elements;
  collect(root, elements);
  HwlocNodes nodes;
  std::map<int, int> byCore;
  for (const auto& [number, element] : elements) {
    const auto cores = coresOf(element);
    nodes[number] = standIn(cores, byCore);
    if (nodes[number] < 0) nodes[number] = add(system, numaOfObject(element, number));
    for (const int core : cores) byCore.emplace(core, nodes[number]);
  }
  if (!nodes.empty()) return nodes;
  nodes[0] = add(system, numaOfObject(root.child("object"), 0));
  system.remarks.emplace_back("no memory node is told of: one is assumed, with all cores");
  return nodes;
}

}  // namespace tutti::topology

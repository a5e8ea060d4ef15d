#include "topo/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/plain_text.h"
#include "topology/paths.h"
#include "topology/warnings.h"

namespace tutti::topo {
namespace {

using topology::Device;
using topology::DeviceKind;
using topology::Link;
using topology::LinkKind;
using topology::System;

constexpr size_t kLongestText = 80;

std::string plain(const std::string& text) { return plainText(text, kLongestText); }

// The link from a device to what it is below.
const Link* upLink(const System& system, int device) {
  for (const Link& link : system.links)
    if (link.b == device && link.a == system.devices[device].parent && link.kind != LinkKind::kC2c) return &link;
  return nullptr;
}

int nvlinksOf(const System& system, int gpu) {
  int count = 0;
  for (const Link& link : system.links)
    if (link.kind == LinkKind::kNvLink && (link.a == gpu || link.b == gpu)) count += link.count;
  return count;
}

// "PCI 16 GT/s x16, 24 GB/s"
std::string linkText(const System& system, int device) {
  const topology::Pci& pci = *system.devices[device].pci;
  if (pci.speed.empty() && pci.width == 0) return "PCI of unknown speed and width";
  const Link* link = upLink(system, device);
  return fmt::format("PCI {} {}, {:.4g} GB/s", pci.speed.empty() ? "of unknown speed" : plain(pci.speed),
                     pci.width > 0 ? fmt::format("x{}", pci.width) : "of unknown width", link ? link->gigabytes : 0);
}

std::string numaText(const System& system, int device) {
  const topology::Numa& numa = *system.devices[device].numa;
  std::string text = fmt::format("{}  {} {} family {} model {}", nameOf(system, device), plain(numa.arch),
                                 plain(numa.vendor), numa.family, numa.model);
  if (!numa.affinity.empty()) text += "  cores " + plain(numa.affinity);
  if (!numa.host.empty()) text += "  host " + plain(numa.host);
  return text;
}

std::string gpuText(const System& system, int device) {
  const Device& one = system.devices[device];
  std::string text = nameOf(system, device);
  if (one.gpu && one.gpu->number >= 0) text += "  " + plain(one.pci->busId);  // else it is the name
  if (one.gpu && one.gpu->sm > 0) text += fmt::format("  sm {}", one.gpu->sm);
  text += "  " + linkText(system, device);
  if (const int count = nvlinksOf(system, device)) text += fmt::format("  {} NVLinks", count);
  return text;
}

std::string speedText(const topology::Port& port) {
  if (port.megabits == 0) return "of unknown speed";
  return fmt::format("{:g} Gb/s", static_cast<double>(port.megabits) / 1000);
}

std::string nicText(const System& system, int device) {
  const Device& one = system.devices[device];
  std::string text = "NIC";
  if (one.pci) text += fmt::format("  {}  {}", plain(one.pci->busId), linkText(system, device));
  for (const int port : childrenOf(system, device))
    if (const auto& is = system.devices[port].port)
      text += fmt::format("  {} {}", nameOf(system, port), speedText(*is));
  return text;
}

std::string deviceText(const System& system, int device) {
  switch (system.devices[device].kind) {
    case DeviceKind::kNuma:
      return numaText(system, device);
    case DeviceKind::kGpu:
      return gpuText(system, device);
    case DeviceKind::kNic:
      return nicText(system, device);
    case DeviceKind::kPci:
    case DeviceKind::kNvSwitch:
    case DeviceKind::kPort:
      break;
  }
  return fmt::format("{}  {}", nameOf(system, device), linkText(system, device));
}

void addTree(const System& system, int device, const std::string& indent, std::string& text) {
  text += fmt::format("{}{}\n", indent, deviceText(system, device));
  for (const int child : childrenOf(system, device))
    if (system.devices[child].kind != DeviceKind::kPort) addTree(system, child, indent + "  ", text);
}

// NVSwitches that stand beside the tree.
std::string fabricText(const System& system) {
  std::string text;
  for (const int plane : devicesOf(system, DeviceKind::kNvSwitch)) {
    int links = 0;
    for (const Link& link : system.links)
      if (link.kind == LinkKind::kNvLink && link.b == plane) links += link.count;
    text += fmt::format("{}  {} NVLinks\n", nameOf(system, plane), links);
  }
  return text;
}

// A GPU's number, or that of a NIC's first port.
int numberOf(const System& system, int device) {
  if (const auto& gpu = system.devices[device].gpu) return gpu->number;
  for (const int child : childrenOf(system, device))
    if (const auto& port = system.devices[child].port) return port->number;
  return -1;
}

std::vector<int> byNumber(const System& system, DeviceKind kind) {
  std::vector<int> found = devicesOf(system, kind);
  std::stable_sort(found.begin(), found.end(), [&](int a, int b) { return numberOf(system, a) < numberOf(system, b); });
  return found;
}

struct End {
  int device;
  std::string label;  // "G3", "N0"
};

std::vector<End> endsOf(const System& system) {
  std::vector<End> ends;
  for (const int gpu : byNumber(system, DeviceKind::kGpu)) ends.push_back({gpu, fmt::format("G{}", ends.size())});
  const size_t gpus = ends.size();
  for (const int nic : byNumber(system, DeviceKind::kNic))
    ends.push_back({nic, fmt::format("N{}", ends.size() - gpus)});
  return ends;
}

// Rows are GPUs and NICs, columns the same under labels.
std::string matrixText(const System& system) {
  const std::vector<End> ends = endsOf(system);
  if (ends.size() < 2) return "";
  const topology::Paths paths(system);
  size_t widest = 0;
  for (const End& end : ends) widest = std::max(widest, nameOf(system, end.device).size());
  std::string text = fmt::format("{:{}}", "", widest + 4);
  for (const End& end : ends) text += fmt::format(" {:>3}", end.label);
  for (const End& row : ends) {
    text += fmt::format("\n{:<3} {:{}}", row.label, nameOf(system, row.device), widest);
    for (const End& column : ends)
      text += fmt::format(" {:>3}",
                          row.device == column.device ? "-" : nameOf(paths.between(row.device, column.device).type));
  }
  return text + "\n";
}

std::string section(const std::string& text) { return text.empty() ? "" : "\n" + text; }

}  // namespace

std::string showText(const System& system) {
  std::string text;
  for (const int node : devicesOf(system, DeviceKind::kNuma)) addTree(system, node, "", text);
  text += section(fabricText(system)) + section(matrixText(system));
  std::string notes;
  for (const std::string& remark : system.remarks) notes += fmt::format("remark: {}\n", remark);
  for (const std::string& warning : warningsOf(system)) notes += fmt::format("warning: {}\n", warning);
  return text + section(notes);
}

}  // namespace tutti::topo

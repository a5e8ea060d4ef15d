#include "drawing/labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plain_text.h"

namespace tutti::drawing {
namespace {

using topology::Device;
using topology::DeviceKind;
using topology::Link;
using topology::LinkKind;
using topology::System;

constexpr size_t kLongestText = 80, kLongestOfBox = 16, kLongestPort = 14, kMostPorts = 4;

std::string plain(const std::string& text) { return plainText(text, kLongestText); }
std::string brief(const std::string& text) { return plainText(text, kLongestOfBox); }

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

std::string nicText(const System& system, int device) {
  const Device& one = system.devices[device];
  std::string text = "NIC";
  if (one.pci) text += fmt::format("  {}  {}", plain(one.pci->busId), linkText(system, device));
  for (const int port : childrenOf(system, device))
    if (const auto& is = system.devices[port].port)
      text += fmt::format("  {} {}", nameOf(system, port), speedText(*is));
  return text;
}

std::vector<std::string> numaLines(const System& system, int device) {
  const topology::Numa& numa = *system.devices[device].numa;
  std::vector<std::string> lines{nameOf(system, device)};
  if (!numa.vendor.empty())
    lines.push_back(fmt::format("{} family {} model {}", brief(numa.vendor), numa.family, numa.model));
  if (!numa.affinity.empty()) lines.push_back(fmt::format("{} processing units", processingUnitsOf(numa)));
  return lines;
}

std::vector<std::string> gpuLines(const System& system, int device) {
  const Device& one = system.devices[device];
  std::vector<std::string> lines{one.gpu && one.gpu->number >= 0 ? nameOf(system, device) : "GPU"};
  lines.push_back(brief(one.pci->busId));
  if (one.gpu && one.gpu->sm > 0) lines.push_back(fmt::format("sm {}", one.gpu->sm));
  for (const Link& link : system.links)
    if (link.kind == LinkKind::kC2c && link.b == device)
      lines.push_back(fmt::format("C2C {:.4g} GB/s", link.gigabytes));
  return lines;
}

std::vector<int> portsOf(const System& system, int nic) {
  std::vector<int> ports = childrenOf(system, nic);
  std::erase_if(ports, [&](int child) { return !system.devices[child].port; });
  return ports;
}

// Of one port its name and its speed, of several both in a line each.
std::vector<std::string> nicLines(const System& system, int device) {
  const std::vector<int> ports = portsOf(system, device);
  const auto port = [&](size_t i) -> const topology::Port& { return *system.devices[ports[i]].port; };
  const auto name = [&](size_t i) { return plainText(nameOf(system, ports[i]), kLongestPort); };
  std::vector<std::string> lines{ports.size() == 1 ? name(0) : "NIC"};
  if (ports.size() == 1) lines.push_back(speedText(port(0)));
  for (size_t i = 0; ports.size() > 1 && i < std::min(ports.size(), kMostPorts); ++i)
    lines.push_back(fmt::format("{} {}", name(i), port(i).megabits == 0 ? "unknown" : speedText(port(i))));
  if (ports.size() > kMostPorts) lines.push_back(fmt::format("and {} ports more", ports.size() - kMostPorts));
  if (const std::string pci = pciText(system, device); !pci.empty()) lines.push_back("PCI " + pci);
  return lines;
}

}  // namespace

const Link* upLink(const System& system, int device) {
  for (const Link& link : system.links)
    if (link.b == device && link.a == system.devices[device].parent && link.kind != LinkKind::kC2c) return &link;
  return nullptr;
}

int nvlinksOf(const System& system, int device) {
  int count = 0;
  for (const Link& link : system.links)
    if (link.kind == LinkKind::kNvLink && (link.a == device || link.b == device)) count += link.count;
  return count;
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

std::string speedText(const topology::Port& port) {
  if (port.megabits == 0) return "of unknown speed";
  return fmt::format("{:g} Gb/s", static_cast<double>(port.megabits) / 1000);
}

std::vector<std::string> boxLines(const System& system, int device) {
  switch (system.devices[device].kind) {
    case DeviceKind::kNuma:
      return numaLines(system, device);
    case DeviceKind::kGpu:
      return gpuLines(system, device);
    case DeviceKind::kNic:
      return nicLines(system, device);
    case DeviceKind::kNvSwitch:
      return {"NVSwitch", brief(system.devices[device].pci->busId)};
    case DeviceKind::kPci:
    case DeviceKind::kPort:
      break;
  }
  return {"switch", brief(system.devices[device].pci->busId)};
}

std::string pciText(const System& system, int device) {
  const auto& pci = system.devices[device].pci;
  const Link* link = upLink(system, device);
  if (!pci || !link) return "";
  return fmt::format("{:.4g} GB/s{}", link->gigabytes, pci->speed.empty() || pci->width == 0 ? " assumed" : "");
}

}  // namespace tutti::drawing

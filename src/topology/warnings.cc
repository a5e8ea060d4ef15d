#include "topology/warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/plain_text.h"
#include "topology/bus_id.h"
#include "topology/speeds.h"

namespace tutti::topology {
namespace {

constexpr size_t kLongestTold = 64;
// A link that carries less than this part of one below it is not believed: real ones are mostly as fast, or share two.
constexpr double kIncredible = 1.0 / 8;

int nvlinksOf(const System& system, int gpu) {
  int count = 0;
  for (const Link& link : system.links)
    if (link.kind == LinkKind::kNvLink && (link.a == gpu || link.b == gpu)) count += link.count;
  return count;
}

// Of equal GPUs, each number of NVLinks with those who have it.
void unequalNvLinks(const System& system, std::vector<std::string>& warnings) {
  std::map<std::tuple<std::string, std::string, int>, std::map<int, std::vector<std::string>>> kinds;
  for (const int gpu : devicesOf(system, DeviceKind::kGpu)) {
    const Device& one = system.devices[gpu];
    if (one.pci && one.gpu)
      kinds[{one.pci->vendor, one.pci->device, one.gpu->sm}][nvlinksOf(system, gpu)].push_back(nameOf(system, gpu));
  }
  for (const auto& [kind, counts] : kinds) {
    if (counts.size() < 2) continue;
    std::vector<std::string> groups;
    for (const auto& [count, gpus] : counts) groups.push_back(fmt::format("{} has {}", fmt::join(gpus, ", "), count));
    warnings.push_back(
        fmt::format("equal GPUs have unequal numbers of NVLinks: {}. A link may be down, or its state was "
                    "not told: look at nvidia-smi nvlink --status",
                    fmt::join(groups, "; ")));
  }
}

std::string hostOf(const System& system, int device) {
  const int numa = numaOf(system, device);
  return numa < 0 ? "" : system.devices[numa].numa->host;
}

// What a GPU or a NIC's port is called by; empty where it has neither number nor name.
std::string callOf(const System& system, int device) {
  const Device& one = system.devices[device];
  const bool called = one.kind == DeviceKind::kGpu ? one.gpu && one.gpu->number >= 0 : !one.port->name.empty();
  return called ? nameOf(system, device) : "";
}

// The GPU or the NIC, as ports of one NIC may well have its name.
std::string placeOf(const System& system, int device) {
  const int whole = system.devices[device].kind == DeviceKind::kPort ? system.devices[device].parent : device;
  const auto& pci = system.devices[whole].pci;
  return pci ? plainText(pci->busId, kLongestTold) : "beside the bus";
}

// Two devices of a host that are called alike: who asks for one (--complete, TUTTI_IB_HCA) may get the other.
void namesakes(const System& system, std::vector<std::string>& warnings) {
  std::map<std::tuple<DeviceKind, std::string, std::string>, std::set<std::string>> called;
  for (const DeviceKind kind : {DeviceKind::kGpu, DeviceKind::kPort})
    for (const int device : devicesOf(system, kind))
      if (const std::string call = callOf(system, device); !call.empty())
        called[{kind, hostOf(system, device), call}].insert(placeOf(system, device));
  for (const auto& [key, places] : called)
    if (places.size() > 1)
      warnings.push_back(fmt::format("{} devices are called {}: {}. Give each a {} of its own", places.size(),
                                     std::get<2>(key), fmt::join(places, ", "),
                                     std::get<0>(key) == DeviceKind::kGpu ? "number (dev)" : "name"));
}

void hiddenFabric(const System& system, std::vector<std::string>& warnings) {
  for (const int plane : devicesOf(system, DeviceKind::kNvSwitch)) {
    if (!isHiddenFabric(system.devices[plane].pci->busId)) continue;
    const auto links = std::count_if(system.links.begin(), system.links.end(), [&](const Link& link) {
      return link.kind == LinkKind::kNvLink && link.b == plane;
    });
    warnings.push_back(
        fmt::format("the NVLinks of {} GPUs lead to a fabric that is hidden, as virtual machines do it: "
                    "all of these GPUs are taken to reach each other",
                    links));
  }
}

void farNics(const System& system, std::vector<std::string>& warnings) {
  std::set<int> withGpus;
  for (const int gpu : devicesOf(system, DeviceKind::kGpu)) withGpus.insert(numaOf(system, gpu));
  if (withGpus.empty()) return;
  for (const int nic : devicesOf(system, DeviceKind::kNic))
    if (const int numa = numaOf(system, nic); numa >= 0 && !withGpus.contains(numa))
      warnings.push_back(fmt::format("{} is at {}, where no GPU is: all GPUs reach it between memory nodes only",
                                     nameOf(system, nic), nameOf(system, numa)));
}

const Link* upLink(const System& system, int device) {
  for (const Link& link : system.links)
    if (link.kind == LinkKind::kPci && link.b == device && link.a == system.devices[device].parent) return &link;
  return nullptr;
}

// Of the links to devices below.
double fastestBelow(const System& system, int device) {
  double fastest = 0;
  for (const int child : childrenOf(system, device))
    if (const Link* link = upLink(system, child)) fastest = std::max(fastest, link->gigabytes);
  return fastest;
}

// Those that say the same of themselves in one warning.
void incredibleLinks(const System& system, std::vector<std::string>& warnings) {
  std::map<std::tuple<std::string, double, double>, std::vector<std::string>> said;
  for (const int device : devicesOf(system, DeviceKind::kPci)) {
    const Link* own = upLink(system, device);
    const double below = fastestBelow(system, device);
    const Pci& pci = *system.devices[device].pci;
    if (own && own->gigabytes < kIncredible * below)
      said[{fmt::format("\"{}\" x{}", plainText(pci.speed, kLongestTold), pci.width), own->gigabytes, below}].push_back(
          nameOf(system, device));
  }
  for (const auto& [link, names] : said)
    warnings.push_back(
        fmt::format("{} ({:.2f} GB/s) is said of the link above {}, yet a device below has {:.2f} GB/s: "
                    "virtual machines say so of links that are as fast as the device",
                    std::get<0>(link), std::get<1>(link), fmt::join(names, ", "), std::get<2>(link)));
}

}  // namespace

std::vector<std::string> warningsOf(const System& system) {
  std::vector<std::string> warnings;
  unequalNvLinks(system, warnings);
  namesakes(system, warnings);
  hiddenFabric(system, warnings);
  farNics(system, warnings);
  incredibleLinks(system, warnings);
  return warnings;
}

}  // namespace tutti::topology

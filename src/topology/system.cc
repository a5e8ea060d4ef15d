#include "topology/system.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <map>
#include <tuple>

#include "base/plain_text.h"
#include "topology/bus_id.h"

namespace tutti::topology {
namespace {

constexpr size_t kLongestName = 64;

std::string busIdOf(const Device& device) {
  return device.pci ? plainText(device.pci->busId, kLongestName) : "a device without a bus id";
}

// A NIC is known by its first port, so far as it has one.
std::string nameOfNic(const System& system, int device) {
  for (const int child : childrenOf(system, device))
    if (const auto& port = system.devices[child].port; port && !port->name.empty())
      return plainText(port->name, kLongestName);
  return "NIC " + busIdOf(system.devices[device]);
}

int numberOf(const System& system, int device) {
  if (const auto& gpu = system.devices[device].gpu) return gpu->number;
  if (const auto& port = system.devices[device].port) return port->number;
  for (const int child : childrenOf(system, device))
    if (const auto& port = system.devices[child].port) return port->number;
  return -1;
}

// Which host of a file of several: its place among them.
std::vector<int> hostsOf(const System& system, const std::vector<int>& devices) {
  std::map<std::string, int> places;
  for (const int node : devicesOf(system, DeviceKind::kNuma))
    places.emplace(system.devices[node].numa->host, static_cast<int>(places.size()));
  std::vector<int> hosts;
  for (const int device : devices) {
    const int numa = numaOf(system, device);
    hosts.push_back(numa < 0 ? -1 : places[system.devices[numa].numa->host]);
  }
  return hosts;
}

}  // namespace

std::string nameOf(const System& system, int device) {
  const Device& one = system.devices[device];
  switch (one.kind) {
    case DeviceKind::kNuma:
      return one.numa->number < 0 ? "NUMA ?" : fmt::format("NUMA {}", one.numa->number);
    case DeviceKind::kGpu:
      return one.gpu && one.gpu->number >= 0 ? fmt::format("GPU {}", one.gpu->number) : "GPU " + busIdOf(one);
    case DeviceKind::kNic:
      return nameOfNic(system, device);
    case DeviceKind::kPort:
      return one.port->name.empty() ? fmt::format("port {}", one.port->number)
                                    : plainText(one.port->name, kLongestName);
    case DeviceKind::kNvSwitch:
      return isHiddenFabric(one.pci->busId) ? "hidden fabric" : "NVSwitch " + busIdOf(one);
    case DeviceKind::kPci:
      break;
  }
  return "switch " + busIdOf(one);
}

int numaOf(const System& system, int device) {
  while (device >= 0 && system.devices[device].kind != DeviceKind::kNuma) device = system.devices[device].parent;
  return device;
}

// RCCL's GPUs are 0x0380.
DeviceKind kindOfClass(std::string_view classCode) {
  const std::string_view start = classCode.substr(0, 6);
  if (start == "0x0302" || start == "0x0380" || start == "0x0300") return DeviceKind::kGpu;
  if (start == "0x0200" || start == "0x0207") return DeviceKind::kNic;
  if (start == "0x0680") return DeviceKind::kNvSwitch;
  return DeviceKind::kPci;
}

std::vector<int> devicesOf(const System& system, DeviceKind kind) {
  std::vector<int> found;
  for (size_t i = 0; i < system.devices.size(); ++i)
    if (system.devices[i].kind == kind) found.push_back(static_cast<int>(i));
  return found;
}

std::vector<int> childrenOf(const System& system, int device) {
  std::vector<int> found;
  for (size_t i = static_cast<size_t>(device) + 1; i < system.devices.size(); ++i)
    if (system.devices[i].parent == device) found.push_back(static_cast<int>(i));
  return found;
}

std::vector<int> byNumber(const System& system, DeviceKind kind) {
  const std::vector<int> found = devicesOf(system, kind), hosts = hostsOf(system, found);
  std::vector<std::tuple<int, int, int>> order;  // host, number, device
  for (size_t i = 0; i < found.size(); ++i) order.emplace_back(hosts[i], numberOf(system, found[i]), found[i]);
  std::ranges::sort(order);
  std::vector<int> sorted;
  for (const auto& each : order) sorted.push_back(std::get<2>(each));
  return sorted;
}

int processingUnitsOf(const Numa& numa) {
  int units = 0;
  for (const unsigned char c : numa.affinity) {
    const int letter = std::tolower(c);
    const int digit = std::isdigit(c) ? c - '0' : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : 0;
    units += std::popcount(static_cast<unsigned>(digit));
  }
  return units;
}

}  // namespace tutti::topology

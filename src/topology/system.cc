#include "topology/system.h"

#include <fmt/format.h>

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

}  // namespace tutti::topology

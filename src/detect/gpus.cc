#include "detect/gpus.h"

#include <fmt/format.h>

#include "topology/bus_id.h"

namespace tutti::detect {
namespace {

using topology::Device;
using topology::DeviceKind;
using topology::System;

Device* find(System& system, const std::string& busId) {
  for (Device& one : system.devices)
    if (one.pci && topology::parseBusId(one.pci->busId) == topology::parseBusId(busId)) return &one;
  return nullptr;
}

Device& add(System& system, const std::string& busId) {
  system.remarks.push_back(
      fmt::format("{}: a GPU that the kernel does not show; its memory node is unknown, the first is assumed", busId));
  Device& one = system.devices.emplace_back();
  one.parent = 0;
  one.pci.emplace();
  one.pci->busId = busId;
  one.pci->classCode = "0x030200";
  one.pci->vendor = "0x10de";
  return one;
}

}  // namespace

void addGpus(System& system, const std::vector<SeenGpu>& seen) {
  for (const SeenGpu& one : seen) {
    Device* const found = find(system, one.busId);
    Device& device = found != nullptr ? *found : add(system, one.busId);
    device.kind = DeviceKind::kGpu;
    device.gpu = one.gpu;
  }
}

}  // namespace tutti::detect

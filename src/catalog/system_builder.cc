#include "catalog/system_builder.h"

#include <fmt/format.h>

namespace tutti::topology {
namespace {

constexpr int kBits = 32;  // of one group of a mask
constexpr const char* kGpuClass = "0x030200";
constexpr const char* kBridgeClass = "0x060400";
constexpr const char* kSwitchClass = "0x068000";

}  // namespace

std::string affinityMask(int first, int count, int total) {
  std::string text;
  for (int group = (total - 1) / kBits; group >= 0; --group) {
    uint32_t bits = 0;
    for (int bit = 0; bit < kBits; ++bit) {
      const int unit = group * kBits + bit;
      if (unit >= first && unit < first + count) bits |= uint32_t{1} << bit;
    }
    text += fmt::format("{}{:08x}", text.empty() ? "" : ",", bits);
  }
  return text;
}

int SystemBuilder::add(DeviceKind kind, int parent) {
  Device& device = system_.devices.emplace_back();
  device.kind = kind;
  device.parent = parent;
  return static_cast<int>(system_.devices.size()) - 1;
}

Pci& SystemBuilder::pci(int device, const std::string& busId, const char* classCode, PciLink link) {
  Pci& pci = system_.devices[device].pci.emplace();
  pci.busId = busId;
  pci.classCode = classCode;
  pci.speed = link.speed;
  pci.width = link.width;
  return pci;
}

int SystemBuilder::numa(int number, const CpuModel& cpu, const std::string& affinity) {
  const int device = add(DeviceKind::kNuma, -1);
  Numa& numa = system_.devices[device].numa.emplace();
  numa.number = number;
  numa.affinity = affinity;
  numa.arch = cpu.arch;
  numa.vendor = cpu.vendor;
  numa.family = cpu.family;
  numa.model = cpu.model;
  return device;
}

int SystemBuilder::bridge(int parent, const std::string& busId, PciLink link, const char* vendor, const char* device) {
  const int added = add(DeviceKind::kPci, parent);
  Pci& own = pci(added, busId, kBridgeClass, link);
  own.vendor = vendor;
  own.device = device;
  return added;
}

int SystemBuilder::gpu(int parent, const std::string& busId, int number, const GpuModel& model) {
  const int added = add(DeviceKind::kGpu, parent);
  Pci& own = pci(added, busId, kGpuClass, model.link);
  own.vendor = "0x10de";
  own.device = model.device;
  Gpu& gpu = system_.devices[added].gpu.emplace();
  gpu.number = number;
  gpu.sm = model.sm;
  gpu.direct = true;
  return added;
}

int SystemBuilder::nic(int parent, const std::string& busId, const std::string& name, int number,
                       const PortModel& model) {
  const int added = add(DeviceKind::kNic, parent);
  Pci& own = pci(added, busId, model.classCode, model.link);
  own.vendor = model.vendor;
  own.device = model.device;
  system_.devices[added].nic.emplace();
  Port& port = system_.devices[add(DeviceKind::kPort, added)].port.emplace();
  port.name = name;
  port.number = number;
  port.megabits = model.megabits;
  return added;
}

void SystemBuilder::nvlinks(int gpu, const std::string& target, int count, const char* targetClass) {
  NvLinks& row = system_.devices[gpu].gpu->nvlinks.emplace_back();
  row.target = target;
  row.count = count;
  row.targetClass = targetClass;
}

void SystemBuilder::nvswitches(const std::vector<std::pair<std::string, int>>& switches) {
  for (const int gpu : devicesOf(system_, DeviceKind::kGpu))
    for (const auto& [busId, count] : switches) nvlinks(gpu, busId, count, kSwitchClass);
}

}  // namespace tutti::topology

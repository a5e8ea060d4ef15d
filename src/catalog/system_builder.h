// Builds a system device by device.
#pragma once
#include <string>
#include <vector>

#include "topology/system.h"

namespace tutti::topology {

// A processor's model, as all memory nodes of a machine have it.
struct CpuModel {
  const char* arch;
  const char* vendor;
  int family, model;
};
inline constexpr CpuModel kSkylake{"x86_64", "GenuineIntel", 6, 85};
inline constexpr CpuModel kSapphireRapids{"x86_64", "GenuineIntel", 6, 143};
inline constexpr CpuModel kRome{"x86_64", "AuthenticAMD", 23, 49};
inline constexpr CpuModel kMilan{"x86_64", "AuthenticAMD", 175, 1};

struct PciLink {
  const char* speed;
  int width;
};

struct GpuModel {
  const char* device;
  int sm;
  PciLink link;
};

// The number of a port is its place in the order of names where the maker tells no other.
struct PortModel {
  const char* classCode;  // 0x020700 InfiniBand, 0x020000 Ethernet
  const char* vendor;
  const char* device;
  PciLink link;
  int64_t megabits;
};

// The processing units from `first` on, of `total` in the machine: "00000000,000fffff".
std::string affinityMask(int first, int count, int total);

class SystemBuilder {
 public:
  int numa(int number, const CpuModel& cpu, const std::string& affinity);
  int bridge(int parent, const std::string& busId, PciLink link, const char* vendor = "0x0000",
             const char* device = "0x0000");
  int gpu(int parent, const std::string& busId, int number, const GpuModel& model);
  // A NIC with one port.
  int nic(int parent, const std::string& busId, const std::string& name, int number, const PortModel& model);
  void nvlinks(int gpu, const std::string& target, int count, const char* targetClass);
  // From every GPU so many to each of these.
  void nvswitches(const std::vector<std::pair<std::string, int>>& switches);
  void remark(std::string text) { system_.remarks.push_back(std::move(text)); }
  const std::string& busIdOf(int device) const { return system_.devices[device].pci->busId; }
  System take() { return std::move(system_); }

 private:
  int add(DeviceKind kind, int parent);
  Pci& pci(int device, const std::string& busId, const char* classCode, PciLink link);

  System system_;
};

}  // namespace tutti::topology

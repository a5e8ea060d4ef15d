// What tests ask of systems: by the names of devices.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "topology/paths.h"
#include "topology/system.h"

namespace tutti::topology {

// The device of that name, or of that bus id; -1 where there is none.
inline int deviceNamed(const System& system, std::string_view name) {
  for (size_t i = 0; i < system.devices.size(); ++i) {
    const auto& pci = system.devices[i].pci;
    if (nameOf(system, static_cast<int>(i)) == name || (pci && pci->busId == name)) return static_cast<int>(i);
  }
  return -1;
}

inline int numaNumberOf(const System& system, std::string_view name) {
  return system.devices[numaOf(system, deviceNamed(system, name))].numa->number;
}

inline std::string pathType(const System& system, std::string_view from, std::string_view to) {
  return std::string(nameOf(Paths(system).between(deviceNamed(system, from), deviceNamed(system, to)).type));
}

inline double bandwidth(const System& system, std::string_view from, std::string_view to) {
  return Paths(system).between(deviceNamed(system, from), deviceNamed(system, to)).gigabytes;
}

inline size_t countOf(const System& system, DeviceKind kind) { return devicesOf(system, kind).size(); }

// How often a text is among the remarks or warnings.
inline int timesSaid(const std::vector<std::string>& texts, std::string_view part) {
  int count = 0;
  for (const std::string& text : texts) count += text.find(part) != std::string::npos;
  return count;
}

}  // namespace tutti::topology

#include "detect/functions.h"

#include <fmt/format.h>

#include <map>

#include "topology/bus_id.h"
#include "topology/prune.h"

namespace tutti::detect {
namespace {

using topology::Device;
using topology::System;

// The device that it is a part of: "physfn" is a link to "../0000:3b:00.0". -1: it is whole, or that device is not
// there.
int wholeOf(const System& system, const Device& one, const Sysfs& sysfs) {
  const std::string link = sysfs.target("/sys/bus/pci/devices/" + one.pci->busId + "/physfn");
  const auto busId = topology::parseBusId(link.substr(link.rfind('/') + 1));
  for (size_t i = 0; busId && i < system.devices.size(); ++i)
    if (const auto& pci = system.devices[i].pci; pci && topology::parseBusId(pci->busId) == busId)
      return static_cast<int>(i);
  return -1;
}

}  // namespace

void removeVirtualFunctions(System& system, const Sysfs& sysfs) {
  std::vector<bool> unwanted(system.devices.size());
  std::map<int, int> parts;
  for (size_t i = 0; i < system.devices.size(); ++i) {
    const int whole = system.devices[i].pci ? wholeOf(system, system.devices[i], sysfs) : -1;
    if (whole < 0) continue;
    unwanted[i] = true;
    ++parts[whole];
  }
  for (const auto& [whole, count] : parts)
    system.remarks.push_back(fmt::format("{}: its virtual functions ({}) are left out", nameOf(system, whole), count));
  removeDevices(system, unwanted);
}

}  // namespace tutti::detect

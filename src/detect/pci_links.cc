#include "detect/pci_links.h"

#include <algorithm>

#include "topology/speeds.h"

namespace tutti::detect {
namespace {

constexpr int64_t kMostLanes = 64;  // the kernel has 255 for a width that it does not know

// The slower of a device and the port that it is plugged into, whose folder is the one above.
void addSpeed(topology::Pci& pci, const Sysfs& sysfs, const std::string& folder) {
  double least = 0;
  for (const char* const end : {"/max_link_speed", "/../max_link_speed"}) {
    const auto said = sysfs.line(folder + end);
    const auto transfers = said ? topology::transfersOf(*said) : std::nullopt;
    if (!transfers || (least > 0 && *transfers >= least)) continue;
    least = *transfers;
    pci.speed = *said;
  }
}

void addWidth(topology::Pci& pci, const Sysfs& sysfs, const std::string& folder) {
  int64_t least = 0;
  for (const char* const end : {"/max_link_width", "/../max_link_width"}) {
    const int64_t lanes = sysfs.number(folder + end).value_or(0);
    if (lanes > 0 && lanes <= kMostLanes && (least == 0 || lanes < least)) least = lanes;
  }
  if (least > 0) pci.width = static_cast<int>(least);
}

}  // namespace

void addPciLinks(topology::System& system, const Sysfs& sysfs) {
  for (topology::Device& device : system.devices) {
    if (!device.pci) continue;
    const std::string folder = "/sys/bus/pci/devices/" + device.pci->busId;
    if (!sysfs.has(folder)) continue;
    addSpeed(*device.pci, sysfs, folder);
    addWidth(*device.pci, sysfs, folder);
  }
}

}  // namespace tutti::detect

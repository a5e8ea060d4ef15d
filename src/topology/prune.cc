#include "topology/prune.h"

#include <fmt/format.h>

namespace tutti::topology {

void removeDevices(System& system, const std::vector<bool>& unwanted) {
  std::vector<int> positions(system.devices.size(), -1);
  std::vector<Device> left;
  for (size_t i = 0; i < system.devices.size(); ++i) {
    Device& one = system.devices[i];
    if (unwanted[i] || (one.parent >= 0 && positions[one.parent] < 0)) continue;
    if (one.parent >= 0) one.parent = positions[one.parent];
    positions[i] = static_cast<int>(left.size());
    left.push_back(std::move(one));
  }
  system.devices = std::move(left);
}

void removeIdle(System& system) {
  std::vector<bool> idle(system.devices.size()), above(system.devices.size());
  for (size_t i = system.devices.size(); i-- > 0;) {  // who is below another comes after it
    const Device& one = system.devices[i];
    const bool needsMore = one.kind == DeviceKind::kNic || one.kind == DeviceKind::kPci;
    idle[i] = needsMore && !above[i];
    if (!idle[i] && one.parent >= 0) above[one.parent] = true;
    if (idle[i] && one.kind == DeviceKind::kNic)
      system.remarks.push_back(
          fmt::format("{} has no interface that is up: it is left out", nameOf(system, static_cast<int>(i))));
  }
  removeDevices(system, idle);
}

}  // namespace tutti::topology

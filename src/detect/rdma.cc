#include "detect/rdma.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plain_text.h"
#include "topology/prune.h"

namespace tutti::detect {
namespace {

using topology::Port;

constexpr size_t kLongestText = 64;

// An address of zeros is none.
int gidsIn(const Sysfs& sysfs, const std::string& folder) {
  int count = 0;
  for (const std::string& name : sysfs.names(folder)) {
    const std::string gid = sysfs.line(folder + "/" + name).value_or("");
    count += gid.find_first_not_of("0:") != std::string::npos;
  }
  return count;
}

// "506b:4b03:00f3:a1c2" as NCCL writes it.
std::string guidOf(std::string said) {
  said.erase(std::remove(said.begin(), said.end(), ':'), said.end());
  return said.empty() ? said : "0x" + said;
}

// Whether it is there and not active.
bool isIdle(const Sysfs& sysfs, const std::string& folder) {
  const auto state = sysfs.line(folder + "/state");  // "4: ACTIVE"
  return state && !state->starts_with("4");
}

void lookAt(Port& port, const Sysfs& sysfs, const std::string& device, const std::string& folder) {
  constexpr int64_t kPerGigabit = 1000;
  port.megabits = std::max<int64_t>(0, sysfs.number(folder + "/rate").value_or(0)) * kPerGigabit;
  port.layer = plainText(sysfs.line(folder + "/link_layer").value_or(""), kLongestText);
  port.gids = gidsIn(sysfs, folder + "/gids");
  if (port.guid.empty()) port.guid = guidOf(sysfs.line(device + "/node_guid").value_or(""));
}

}  // namespace

void addRdma(topology::System& system, const Sysfs& sysfs) {
  std::vector<bool> unwanted(system.devices.size());
  for (size_t i = 0; i < system.devices.size(); ++i) {
    auto& port = system.devices[i].port;
    if (!port || port->ofNic < 0) continue;
    const std::string device = "/sys/class/infiniband/" + port->name,
                      folder = fmt::format("{}/ports/{}", device, port->ofNic);
    if (!sysfs.has(folder)) continue;
    unwanted[i] = isIdle(sysfs, folder);
    if (unwanted[i])
      system.remarks.push_back(fmt::format("port {} of {} is not active ({}): it is left out", port->ofNic, port->name,
                                           plainText(sysfs.line(folder + "/state").value_or(""), kLongestText)));
    lookAt(*port, sysfs, device, folder);
  }
  removeDevices(system, unwanted);
}

}  // namespace tutti::detect

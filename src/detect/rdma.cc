#include "detect/rdma.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/plain_text.h"
#include "base/port_list.h"
#include "topology/prune.h"

namespace tutti::detect {
namespace {

using topology::Gid;
using topology::Port;

constexpr size_t kLongestText = 64;

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
  port.megabits = megabitsOfRate(sysfs.line(folder + "/rate").value_or(""));
  port.layer = plainText(sysfs.line(folder + "/link_layer").value_or(""), kLongestText);
  port.gids = gidsOf(sysfs, folder);
  if (port.guid.empty()) port.guid = guidOf(sysfs.line(device + "/node_guid").value_or(""));
}

}  // namespace

// The table has room for more than there are: an address of zeros is none.
std::vector<Gid> gidsOf(const Sysfs& sysfs, const std::string& port) {
  std::vector<Gid> gids;
  for (const std::string& name : sysfs.names(port + "/gids")) {
    const std::string address = sysfs.line(fmt::format("{}/gids/{}", port, name)).value_or("");
    if (address.find_first_not_of("0:") == std::string::npos) continue;
    const std::string type = sysfs.line(fmt::format("{}/gid_attrs/types/{}", port, name)).value_or("");
    gids.push_back({std::atoi(name.c_str()), plainText(address, kLongestText), plainText(type, kLongestText)});
  }
  std::ranges::sort(gids, {}, &Gid::index);
  return gids;
}

int64_t megabitsOfRate(const std::string& rate) {
  constexpr double kPerGigabit = 1000, kMost = 1e5;
  double gigabits = 0;
  std::from_chars(rate.data(), rate.data() + rate.size(), gigabits);
  return gigabits > 0 && gigabits < kMost ? std::llround(gigabits * kPerGigabit) : 0;
}

uint32_t rdmaMegabits(const Sysfs& sysfs, std::string_view list) {
  constexpr const char* kDevices = "/sys/class/infiniband";
  int64_t all = 0;
  for (const std::string& device : sysfs.names(kDevices))
    for (const std::string& port : sysfs.names(fmt::format("{}/{}/ports", kDevices, device))) {
      const std::string folder = fmt::format("{}/{}/ports/{}", kDevices, device, port);
      if (!meansPort(list, device, std::atoi(port.c_str())) || isIdle(sysfs, folder)) continue;
      const int64_t megabits = megabitsOfRate(sysfs.line(folder + "/rate").value_or(""));
      if (megabits == 0) return 0;
      all += megabits;
    }
  return static_cast<uint32_t>(std::min<int64_t>(all, UINT32_MAX));
}

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

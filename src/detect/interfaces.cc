#include "detect/interfaces.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/prune.h"

namespace tutti::detect {
namespace {

using topology::Device;
using topology::DeviceKind;
using topology::Port;
using topology::System;

const std::string kFolder = "/sys/class/net/";

bool isDown(const Sysfs& sysfs, const std::string& name) {
  const std::string state = sysfs.line(kFolder + name + "/operstate").value_or("unknown");
  return state != "up" && state != "unknown" && state != "dormant";
}

bool standsOnOthers(const Sysfs& sysfs, const std::string& name) {
  const auto names = sysfs.names(kFolder + name);
  return std::any_of(names.begin(), names.end(), [](const std::string& one) { return one.starts_with("lower_"); });
}

// Of RDMA devices nothing is known here.
// Whether it is of use.
bool lookAt(Port& port, const Sysfs& sysfs, std::vector<std::string>& remarks) {
  if (!sysfs.has(kFolder + port.name)) return true;
  port.megabits = speedOf(sysfs, port.name);
  if (isDown(sysfs, port.name)) remarks.push_back(fmt::format("{} is down: it is left out", port.name));
  return !standsOnOthers(sysfs, port.name) && !isDown(sysfs, port.name);
}

// A container's end of a cable to its host: of no device, with another interface at its other end, and no part of a
// bridge or a bond.
bool isContainersOwn(const Sysfs& sysfs, const std::string& name) {
  constexpr int64_t kEthernet = 1;
  const std::string folder = kFolder + name;
  const bool cable = sysfs.number(folder + "/iflink") != sysfs.number(folder + "/ifindex");
  return cable && sysfs.number(folder + "/type") == kEthernet && !sysfs.has(folder + "/device") &&
         !sysfs.has(folder + "/master") && !isDown(sysfs, name) && !standsOnOthers(sysfs, name);
}

void add(System& system, const Sysfs& sysfs, const std::string& name) {
  const int numa = devicesOf(system, DeviceKind::kNuma).front();
  Device nic, port;
  nic.kind = DeviceKind::kNic;
  nic.parent = numa;
  nic.nic.emplace();
  system.devices.push_back(nic);
  port.kind = DeviceKind::kPort;
  port.parent = static_cast<int>(system.devices.size()) - 1;
  port.port.emplace();
  port.port->name = name;
  port.port->megabits = speedOf(sysfs, name);
  system.devices.push_back(port);
  system.remarks.push_back(fmt::format(
      "{} is virtual, as in a container: which NIC of the host is behind it is unknown, and so is its memory node",
      name));
}

}  // namespace

int64_t speedOf(const Sysfs& sysfs, const std::string& name) {
  return std::max<int64_t>(0, sysfs.number(kFolder + name + "/speed").value_or(0));
}

void addInterfaces(System& system, const Sysfs& sysfs) {
  std::vector<bool> unwanted(system.devices.size());
  for (size_t i = 0; i < system.devices.size(); ++i)
    if (auto& port = system.devices[i].port) unwanted[i] = !lookAt(*port, sysfs, system.remarks);
  removeDevices(system, unwanted);
  removeIdle(system);
  if (!devicesOf(system, DeviceKind::kPort).empty()) return;
  for (const std::string& name : sysfs.names(kFolder))
    if (isContainersOwn(sysfs, name)) add(system, sysfs, name);
}

}  // namespace tutti::detect

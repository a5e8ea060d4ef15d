// A machine of which there is nothing but the kernel's files: hwloc reads them too, with HWLOC_FSROOT.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>

#include "detect/machine_at_hand.h"
#include "unit/machine_tree.h"
#include "unit/topology_facts.h"

namespace tutti::detect {
namespace {

class DetectedTree : public MachineTree {
 protected:
  void SetUp() override {
    MachineTree::SetUp();
    ::setenv("HWLOC_FSROOT", root_.c_str(), 1);
    cores();
  }
  void TearDown() override {
    ::unsetenv("HWLOC_FSROOT");
    MachineTree::TearDown();
  }

  // Two, at one memory node.
  void cores() const {
    files("/proc", {{"cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel"}, {"meminfo", "MemTotal: 1000 kB"}});
    for (const char* core : {"0", "1"}) {
      const std::string own = core[0] == '0' ? "1" : "2";
      files("/sys/devices/system/cpu/cpu" + std::string(core) + "/topology", {{"core_id", core},
                                                                              {"physical_package_id", "0"},
                                                                              {"core_siblings", "3"},
                                                                              {"package_cpus", "3"},
                                                                              {"thread_siblings", own},
                                                                              {"core_cpus", own}});
    }
    files("/sys/devices/system", {{"cpu/online", "0-1"},
                                  {"node/online", "0"},
                                  {"node/node0/cpumap", "3"},
                                  {"node/node0/meminfo", "Node 0 MemTotal: 1000 kB"}});
  }

  // A device below another, and of a bridge its three numbers of buses. Returns its folder.
  std::string pci(const std::string& above, const std::string& busId, const std::string& code,
                  const std::string& vendor, std::array<char, 3> buses = {}) const {
    constexpr size_t kSubclass = 10, kHeader = 14, kBuses = 24;
    const std::string folder = above + "/" + busId;
    std::string config(64, '\0');
    config[kSubclass] = static_cast<char>(std::stoi(code.substr(4, 2), nullptr, 16));
    config[kSubclass + 1] = static_cast<char>(std::stoi(code.substr(2, 2), nullptr, 16));
    config[kHeader] = buses[1] != 0;
    std::copy(buses.begin(), buses.end(), config.begin() + kBuses);
    files(folder, {{"class", code},
                   {"vendor", vendor},
                   {"device", "0x0001"},
                   {"config", config},
                   {"local_cpus", "3"},
                   {"max_link_speed", "16.0 GT/s PCIe"},
                   {"max_link_width", "16"}});
    link("/sys/bus/pci/devices/" + busId, "../../.." + folder.substr(4));
    return folder;
  }
};

TEST_F(DetectedTree, HasAGpuAndANicBehindASwitch) {
  const std::string root = pci("/sys/devices/pci0000:00", "0000:00:01.0", "0x060400", "0x8086", {0, 1, 4});
  const std::string up = pci(root, "0000:01:00.0", "0x060400", "0x1000", {1, 2, 4});
  const std::string left = pci(up, "0000:02:00.0", "0x060400", "0x1000", {2, 3, 3});
  const std::string right = pci(up, "0000:02:01.0", "0x060400", "0x1000", {2, 4, 4});
  pci(left, "0000:03:00.0", "0x030200", "0x10de");
  const std::string rdma = pci(right, "0000:04:00.0", "0x020700", "0x15b3") + "/infiniband/mlx5_0";
  files(rdma + "/ports/1", {{"state", "4: ACTIVE"}, {"rate", "200 Gb/sec (4X HDR)"}, {"link_layer", "InfiniBand"}});
  link(rdma + "/device", "../../../0000:04:00.0");
  link("/sys/class/infiniband/mlx5_0", "../.." + rdma.substr(4));

  const System system = detectSystem({"", root_, "/nowhere/libnvidia-ml.so.1"});
  EXPECT_EQ(countOf(system, DeviceKind::kPci), 1u);
  EXPECT_EQ(pathType(system, "0000:03:00.0", "mlx5_0"), "PIX");
  EXPECT_DOUBLE_EQ(bandwidth(system, "0000:03:00.0", "mlx5_0"), 24);
  EXPECT_EQ(system.devices[devicesOf(system, DeviceKind::kPort).at(0)].port->megabits, 200'000);
}

TEST_F(DetectedTree, HasAnInterfaceOfItsOwn) {
  const std::string eth = pci("/sys/devices/pci0000:00", "0000:00:03.0", "0x020000", "0x8086") + "/net/eth0";
  files(eth, {{"operstate", "up"}, {"speed", "25000"}, {"address", "02:00:00:00:00:01"}, {"type", "1"}});
  link(eth + "/device", "../../../0000:00:03.0");
  link("/sys/class/net/eth0", "../.." + eth.substr(4));
  const System system = detectSystem({"", root_, "/nowhere/libnvidia-ml.so.1"});
  ASSERT_GE(deviceNamed(system, "eth0"), 0);
  EXPECT_EQ(system.devices[deviceNamed(system, "eth0")].pci->busId, "0000:00:03.0");
}

TEST_F(DetectedTree, WithoutDevicesIsItsCores) {
  const System system = detectSystem({"", root_, "/nowhere/libnvidia-ml.so.1"});
  ASSERT_EQ(system.devices.size(), 1u);
  EXPECT_EQ(system.devices[0].numa->affinity, "00000003");
}

}  // namespace
}  // namespace tutti::detect

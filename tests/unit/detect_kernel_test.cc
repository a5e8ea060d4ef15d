// What the kernel tells of PCI links, RDMA devices and network interfaces, on machines that are made up.
#include "detect/functions.h"
#include "detect/interfaces.h"
#include "detect/pci_links.h"
#include "detect/rdma.h"
#include "unit/machine_tree.h"
#include "unit/topology_facts.h"

namespace tutti::detect {
namespace {

using topology::Port;

std::vector<std::string> portsOf(const System& system) {
  std::vector<std::string> names;
  for (const int port : devicesOf(system, DeviceKind::kPort)) names.push_back(nameOf(system, port));
  return names;
}

const Port& portNamed(const System& system, const std::string& name) {
  for (const int port : devicesOf(system, DeviceKind::kPort))
    if (system.devices[port].port->name == name) return *system.devices[port].port;
  throw std::out_of_range(name);
}

class DetectedPciLinks : public MachineTree {
 protected:
  // A GPU in a port, as the kernel lays out folders: what is below is inside.
  void gpu(const std::map<std::string, std::string>& own, const std::map<std::string, std::string>& port) {
    const std::string above = "/sys/devices/pci0000:00/0000:00:01.0";
    files(above + "/0000:01:00.0", own);
    files(above, port);
    link("/sys/bus/pci/devices/0000:01:00.0", "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0");
  }
  topology::Pci seen() const {
    System system = oneNode();
    const int gpu = addDevice(system, DeviceKind::kGpu, 0, "0000:01:00.0");
    addPciLinks(system, sysfs());
    return *system.devices[gpu].pci;
  }
};

TEST_F(DetectedPciLinks, AreThoseOfTheDevice) {
  gpu({{"max_link_speed", "16.0 GT/s PCIe"}, {"max_link_width", "16"}, {"current_link_speed", "2.5 GT/s PCIe"}}, {});
  EXPECT_EQ(seen().speed, "16.0 GT/s PCIe") << "a GPU that saves power is not slow";
  EXPECT_EQ(seen().width, 16);
}

TEST_F(DetectedPciLinks, AreNoFasterThanThePort) {
  gpu({{"max_link_speed", "32.0 GT/s PCIe"}, {"max_link_width", "16"}},
      {{"max_link_speed", "16.0 GT/s PCIe"}, {"max_link_width", "8"}});
  EXPECT_EQ(seen().speed, "16.0 GT/s PCIe");
  EXPECT_EQ(seen().width, 8);
}

TEST_F(DetectedPciLinks, MayBeUnknown) {
  gpu({{"max_link_speed", "Unknown"}, {"max_link_width", "255"}}, {});
  EXPECT_EQ(seen().speed, "");
  EXPECT_EQ(seen().width, 0);
}

TEST_F(DetectedPciLinks, AreNotToldWithoutSys) { EXPECT_EQ(seen().speed, ""); }

class DetectedRdma : public MachineTree {
 protected:
  void port(const std::string& device, int number, const std::map<std::string, std::string>& texts) {
    files("/sys/class/infiniband/" + device + "/ports/" + std::to_string(number), texts);
  }
  static System withNic(const std::string& name, int ports = 1) {
    System system = oneNode();
    const int nic = addDevice(system, DeviceKind::kNic, 0, "0000:3b:00.0");
    for (int i = 1; i <= ports; ++i) addPort(system, nic, name, i);
    return system;
  }
};

TEST_F(DetectedRdma, InfiniBand) {
  write("/sys/class/infiniband/mlx5_0/node_guid", "506b:4b03:00f3:a1c2");
  port("mlx5_0", 1,
       {{"state", "4: ACTIVE"},
        {"rate", "200 Gb/sec (4X HDR)"},
        {"link_layer", "InfiniBand"},
        {"gids/0", "fe80:0000:0000:0000:506b:4b03:00f3:a1c2"},
        {"gids/1", "0000:0000:0000:0000:0000:0000:0000:0000"}});
  System system = withNic("mlx5_0");
  addRdma(system, sysfs());
  const Port seen = portNamed(system, "mlx5_0");
  EXPECT_EQ(seen.megabits, 200'000);
  EXPECT_EQ(seen.layer, "InfiniBand");
  EXPECT_EQ(seen.guid, "0x506b4b0300f3a1c2");
  ASSERT_EQ(seen.gids.size(), 1u);
  EXPECT_EQ(seen.gids[0].address, "fe80:0000:0000:0000:506b:4b03:00f3:a1c2");
  EXPECT_EQ(system.remarks.size(), 0u);
}

TEST_F(DetectedRdma, RoceHasAddressesOfTwoKinds) {
  port("rocep1s0", 1,
       {{"state", "4: ACTIVE"},
        {"rate", "2.5 Gb/sec (1X SDR)"},
        {"link_layer", "Ethernet"},
        {"gids/10", "0000:0000:0000:0000:0000:ffff:0a00:0001"},
        {"gid_attrs/types/10", "RoCE v2"},
        {"gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0001"},
        {"gid_attrs/types/2", "IB/RoCE v1"}});
  System system = withNic("rocep1s0");
  addRdma(system, sysfs());
  const Port seen = portNamed(system, "rocep1s0");
  EXPECT_EQ(seen.megabits, 2'500);
  ASSERT_EQ(seen.gids.size(), 2u);
  EXPECT_EQ(seen.gids[0], (topology::Gid{2, "0000:0000:0000:0000:0000:ffff:0a00:0001", "IB/RoCE v1"}));
  EXPECT_EQ(seen.gids[1].type, "RoCE v2");
}

TEST_F(DetectedRdma, PortsThatAreNotActiveAreLeftOut) {
  port("mlx5_0", 1, {{"state", "4: ACTIVE"}, {"rate", "100 Gb/sec (4X EDR)"}});
  port("mlx5_0", 2, {{"state", "1: DOWN"}, {"rate", "10 Gb/sec (4X SDR)"}});
  System system = withNic("mlx5_0", 2);
  addRdma(system, sysfs());
  EXPECT_EQ(portsOf(system).size(), 1u);
  EXPECT_EQ(timesSaid(system.remarks, "port 2 of mlx5_0 is not active (1: DOWN): it is left out"), 1);
}

TEST_F(DetectedRdma, NonsenseIsUnknown) {
  port("mlx5_0", 1, {{"state", "4: ACTIVE"}, {"rate", "-7 Gb/sec"}, {"gids/x", "\x1b[2J"}});
  System system = withNic("mlx5_0");
  addRdma(system, sysfs());
  EXPECT_EQ(portNamed(system, "mlx5_0").megabits, 0);
  EXPECT_EQ(portNamed(system, "mlx5_0").gids[0].address, "\\x1b[2J");
}

TEST_F(DetectedRdma, ActivePortsAddUp) {
  EXPECT_EQ(rdmaMegabits(sysfs(), ""), 0u);
  port("mlx5_0", 1, {{"state", "4: ACTIVE"}, {"rate", "200 Gb/sec (4X HDR)"}});
  port("mlx5_1", 1, {{"state", "4: ACTIVE"}, {"rate", "100 Gb/sec (4X EDR)"}});
  port("mlx5_1", 2, {{"state", "1: DOWN"}, {"rate", "10 Gb/sec (4X SDR)"}});
  EXPECT_EQ(rdmaMegabits(sysfs(), ""), 300'000u);
  EXPECT_EQ(rdmaMegabits(sysfs(), "mlx5_1"), 100'000u);
  EXPECT_EQ(rdmaMegabits(sysfs(), "^=mlx5_1"), 200'000u);
  port("mlx5_2", 1, {{"state", "4: ACTIVE"}});
  EXPECT_EQ(rdmaMegabits(sysfs(), ""), 0u) << "of one it is not known";
}

class DetectedInterfaces : public MachineTree {
 protected:
  void interface(const std::string& name, const std::map<std::string, std::string>& texts = {}) {
    files("/sys/class/net/" + name, {{"operstate", "up"}, {"type", "1"}, {"ifindex", "2"}, {"iflink", "2"}});
    files("/sys/class/net/" + name, texts);
  }
  // Two cards, as hwloc knows them.
  static System withCards() {
    System system = oneNode();
    addPort(system, addDevice(system, DeviceKind::kNic, 0, "0000:3b:00.0"), "eth0");
    addPort(system, addDevice(system, DeviceKind::kNic, 0, "0000:3c:00.0"), "eth1");
    return system;
  }
  System seen(System system) const {
    addInterfaces(system, sysfs());
    return system;
  }
};

TEST_F(DetectedInterfaces, HaveASpeed) {
  interface("eth0", {{"speed", "100000"}});
  interface("eth1", {{"speed", "-1"}});
  const System system = seen(withCards());
  EXPECT_EQ(portNamed(system, "eth0").megabits, 100'000);
  EXPECT_EQ(portNamed(system, "eth1").megabits, 0);
}

TEST_F(DetectedInterfaces, ThatAreDownAreLeftOutWithTheirCard) {
  interface("eth0", {{"speed", "100000"}});
  interface("eth1", {{"operstate", "down"}});
  const System system = seen(withCards());
  EXPECT_EQ(portsOf(system), std::vector<std::string>{"eth0"});
  EXPECT_EQ(countOf(system, DeviceKind::kNic), 1u);
  EXPECT_EQ(timesSaid(system.remarks, "eth1 is down: it is left out"), 1);
}

TEST_F(DetectedInterfaces, OfABondAreShownAndTheBondIsNot) {
  for (const char* name : {"eth0", "eth1"}) {
    interface(name, {{"speed", "25000"}});
    link("/sys/class/net/" + std::string(name) + "/master", "../bond0");
  }
  interface("bond0", {{"speed", "50000"}});
  folder("/sys/class/net/bond0/lower_eth0");
  EXPECT_EQ(portsOf(seen(withCards())), (std::vector<std::string>{"eth0", "eth1"}));
}

// A hypervisor's interface, and the virtual function that its packets go through.
TEST_F(DetectedInterfaces, ThatStandOnOthersAreNoNics) {
  interface("eth0");
  folder("/sys/class/net/eth0/lower_eth1");
  interface("eth1", {{"speed", "100000"}});
  EXPECT_EQ(portsOf(seen(withCards())), std::vector<std::string>{"eth1"});
}

TEST_F(DetectedInterfaces, OfAContainerAreTakenWhereThereIsNoCard) {
  interface("lo", {{"type", "772"}, {"operstate", "unknown"}});
  interface("eth0", {{"iflink", "7"}, {"speed", "10000"}});
  interface("dummy0", {{"operstate", "unknown"}});
  interface("tun0", {{"type", "65534"}, {"operstate", "unknown"}});
  const System system = seen(oneNode());
  EXPECT_EQ(portsOf(system), std::vector<std::string>{"eth0"});
  EXPECT_EQ(portNamed(system, "eth0").megabits, 10'000);
  EXPECT_EQ(timesSaid(system.remarks, "eth0 is virtual, as in a container"), 1);
}

// A host whose card is down, with the ends of its containers' cables in a bridge.
TEST_F(DetectedInterfaces, OfABridgeAreNoNics) {
  interface("veth7", {{"iflink", "3"}});
  link("/sys/class/net/veth7/master", "../docker0");
  interface("docker0", {{"iflink", "9"}});
  folder("/sys/class/net/docker0/lower_veth7");
  interface("vlan5", {{"iflink", "4"}});
  folder("/sys/class/net/vlan5/lower_eth0");
  EXPECT_EQ(portsOf(seen(oneNode())), std::vector<std::string>{});
}

class DetectedFunctions : public MachineTree {
 protected:
  void SetUp() override {
    MachineTree::SetUp();
    for (const char* part : {"0000:3b:00.2", "0000:3b:00.3"})
      link("/sys/bus/pci/devices/" + std::string(part) + "/physfn", "../0000:3b:00.0");
  }
  System seen(bool whole) const {
    System system = oneNode();
    if (whole) addPort(system, addDevice(system, DeviceKind::kNic, 0, "0000:3b:00.0"), "eth0");
    addPort(system, addDevice(system, DeviceKind::kNic, 0, "0000:3b:00.2"), "eth1");
    addPort(system, addDevice(system, DeviceKind::kNic, 0, "0000:3b:00.3"), "eth2");
    removeVirtualFunctions(system, sysfs());
    return system;
  }
};

TEST_F(DetectedFunctions, OfAHostAreLeftOut) {
  const System system = seen(true);
  EXPECT_EQ(portsOf(system), std::vector<std::string>{"eth0"});
  EXPECT_EQ(timesSaid(system.remarks, "eth0: its virtual functions (2) are left out"), 1);
}

TEST_F(DetectedFunctions, OfAContainerStay) { EXPECT_EQ(portsOf(seen(false)).size(), 2u); }

}  // namespace
}  // namespace tutti::detect

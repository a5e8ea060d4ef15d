// hwloc's XML: as hwloc itself writes it of machines that are made up, and as it reads ours.
#include "exchange/hwloc_xml.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwloc.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "catalog/known_systems.h"
#include "exchange/hwloc_sets.h"
#include "exchange/nccl_xml.h"
#include "exchange/system_file.h"
#include "unit/topology_facts.h"

namespace tutti::topology {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const noexcept { hwloc_topology_destroy(topology); }
};
using Loaded = std::unique_ptr<hwloc_topology, Destroy>;

Loaded fresh() {
  hwloc_topology_t raw = nullptr;
  hwloc_topology_init(&raw);
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  return Loaded(raw);
}

// As hwloc writes a machine in its synthetic notation.
std::string synthetic(const char* machine, unsigned long flags = 0) {
  const Loaded topology = fresh();
  char* text = nullptr;
  int length = 0;
  EXPECT_EQ(hwloc_topology_set_synthetic(topology.get(), machine), 0);
  EXPECT_EQ(hwloc_topology_load(topology.get()), 0);
  EXPECT_EQ(hwloc_topology_export_xmlbuffer(topology.get(), &text, &length, flags), 0);
  const std::string copy = text;
  hwloc_free_xmlbuffer(topology.get(), text);
  return copy;
}

// What hwloc makes of a text; nothing where it refuses it.
Loaded readByHwloc(const std::string& text) {
  Loaded topology = fresh();
  const int size = static_cast<int>(text.size()) + 1;
  if (hwloc_topology_set_xmlbuffer(topology.get(), text.c_str(), size) != 0) return nullptr;
  return hwloc_topology_load(topology.get()) == 0 ? std::move(topology) : nullptr;
}

System read(const std::string& text) { return readSystem(text, "test.xml"); }

std::string inMachine(const std::string& inside, const std::string& nodeset = "0x00000001") {
  return R"(<topology version="2.0"><object type="Machine" cpuset="0x0000000f" nodeset=")" + nodeset + "\">" + inside +
         "</object></topology>";
}

const std::string kNode = R"(<object type="NUMANode" os_index="0" cpuset="0x0000000f" nodeset="0x00000001"/>)";

std::string pciDevice(const std::string& busId, const std::string& type, const std::string& inside) {
  return fmt::format(R"(<object type="PCIDev" pci_busid="{}" pci_type="{}" pci_link_speed="31.507692">{}</object>)",
                     busId, type, inside);
}

std::string hostBridge(const std::string& inside) {
  return R"(<object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[00-ff]">)" + inside + "</object>";
}

std::string bridge(const std::string& busId, const std::string& inside) {
  return R"(<object type="Bridge" bridge_type="1-1" depth="1" bridge_pci="0000:[01-05]" pci_busid=")" + busId +
         R"(" pci_type="0604 [1000:c030] [1000:100b] 00" pci_link_speed="31.507692">)" + inside + "</object>";
}

const std::string kGpuType = "0302 [10de:20b0] [10de:134f] a1", kNicType = "0207 [15b3:101b] [15b3:0007] 00";

TEST(HwlocXml, HasMemoryNodes) {
  const System system = read(synthetic("pack:2 numa:2 core:4 pu:2"));
  ASSERT_EQ(countOf(system, DeviceKind::kNuma), 4u);
  EXPECT_EQ(system.devices[1].numa->number, 1);
  EXPECT_EQ(system.devices[1].numa->affinity, "0000ff00");
  EXPECT_EQ(system.devices.size(), 4u);
}

TEST(HwlocXml, HasManyCores) {
  const System system = read(synthetic("numa:2 core:64 pu:1"));
  EXPECT_EQ(system.devices[1].numa->affinity, "ffffffff,ffffffff,00000000,00000000");
}

TEST(HwlocXml, OfTheFirstVersionIsReadAsWell) {
  const System system = read(synthetic("numa:2 core:4 pu:1", HWLOC_TOPOLOGY_EXPORT_XML_FLAG_V1));
  EXPECT_EQ(countOf(system, DeviceKind::kNuma), 2u);
  EXPECT_EQ(system.devices[1].numa->affinity, "000000f0");
}

TEST(HwlocXml, MemoryWithoutCoresOfItsOwnIsNoPlace) {
  const std::string second = R"(<object type="NUMANode" os_index="1" cpuset="0x0000000f" nodeset="0x00000002"/>)";
  const std::string third = R"(<object type="NUMANode" os_index="2" cpuset="0x0" nodeset="0x00000004"/>)";
  const System system = read(inMachine(kNode + second + third, "0x00000007"));
  EXPECT_EQ(countOf(system, DeviceKind::kNuma), 1u);
}

TEST(HwlocXml, WithoutAMemoryNodeHasOne) {
  const System system = read(inMachine(""));
  EXPECT_EQ(system.devices.at(0).numa->affinity, "0000000f");
  EXPECT_EQ(timesSaid(system.remarks, "no memory node is told of"), 1);
}

TEST(HwlocXml, ProcessorsAreThoseOfThePackage) {
  const System system = read(inMachine(
      R"(<info name="Architecture" value="aarch64"/><object type="Package"><info name="CPUVendor" value="X"/>)"
      R"(<info name="CPUFamilyNumber" value="6"/><info name="CPUModelNumber" value="-3"/>)" +
      kNode + "</object>"));
  const Numa& numa = *system.devices.at(0).numa;
  EXPECT_EQ(numa.arch, "arm64");
  EXPECT_EQ(numa.vendor, "X");
  EXPECT_EQ(numa.family, 6);
  EXPECT_EQ(numa.model, 0);
}

// The processor's port, a switch (a bridge up, and one down to each device), a GPU and a NIC below it.
TEST(HwlocXml, TwoBridgesAreASwitch) {
  const std::string gpu = pciDevice("0000:03:00.0", kGpuType, R"(<object type="OSDev" name="nvml5" osdev_type="1"/>)");
  const std::string nic = pciDevice("0000:04:00.0", kNicType,
                                    R"(<object type="OSDev" name="ib0" osdev_type="2"/>
      <object type="OSDev" name="mlx5_0" osdev_type="3"><info name="NodeGUID" value="506b:4b03:00f3:a1c2"/>
      <info name="Port1State" value="4"/><info name="Port2State" value="1"/></object>)");
  const System system = read(inMachine(
      kNode + hostBridge(bridge("0000:00:01.0",
                                bridge("0000:01:00.0", bridge("0000:02:00.0", gpu) + bridge("0000:02:01.0", nic))))));
  EXPECT_EQ(countOf(system, DeviceKind::kPci), 1u);
  EXPECT_EQ(pathType(system, "GPU 5", "mlx5_0"), "PIX");
  EXPECT_EQ(system.devices[deviceNamed(system, "GPU 5")].pci->speed, "16.0 GT/s PCIe");
  EXPECT_EQ(system.devices[deviceNamed(system, "GPU 5")].pci->width, 16);
  EXPECT_EQ(countOf(system, DeviceKind::kPort), 1u) << "the interface and the idle port are none of their own";
  EXPECT_EQ(system.devices[devicesOf(system, DeviceKind::kPort)[0]].port->guid, "0x506b4b0300f3a1c2");
  EXPECT_EQ(timesSaid(system.remarks, "port 2 of mlx5_0 is not active"), 1);
  EXPECT_EQ(timesSaid(system.remarks, "hwloc tells no NVLinks"), 1);
}

TEST(HwlocXml, WhatIsOfNoUseIsLeftOut) {
  const System system =
      read(inMachine(kNode + hostBridge(pciDevice("0000:00:02.0", "0180 [1af4:1042] [1af4:1042] 01", "") +
                                        pciDevice("0000:00:03.0", "0300 [1a03:2000] [1a03:2000] 41", "") +
                                        pciDevice("0000:00:04.0", "0200 [1af4:1041] [1af4:1041] 01", "") +
                                        bridge("0000:00:05.0", bridge("0000:06:00.0", "")))));
  EXPECT_EQ(system.devices.size(), 1u) << "a disk, a service processor's display, a NIC without interface, a switch";
  EXPECT_EQ(timesSaid(system.remarks, "NIC 0000:00:04.0 has no interface that is up: it is left out"), 1);
}

TEST(HwlocXml, SaysThatItDoesNotTellANode) {
  const std::string second = R"(<object type="NUMANode" os_index="1" cpuset="0x000000f0" nodeset="0x00000002"/>)";
  const std::string eth0 = R"(<object type="OSDev" name="eth0" osdev_type="2"/>)";
  const System system = read(inMachine(kNode + second + eth0, "0x00000003"));
  EXPECT_EQ(numaNumberOf(system, "eth0"), 0);
  EXPECT_EQ(timesSaid(system.remarks, "which memory node the devices of <object type=\"Machine\"> are near; NUMA 0"),
            1);
}

class WrittenForHwloc : public testing::TestWithParam<std::string> {};

TEST_P(WrittenForHwloc, IsReadByHwloc) {
  const System system = makeKnownSystem(GetParam());
  const Loaded topology = readByHwloc(writeHwlocXml(system));
  ASSERT_NE(topology, nullptr);
  const auto count = [&](hwloc_obj_type_t type) {
    return static_cast<size_t>(hwloc_get_nbobjs_by_type(topology.get(), type));
  };
  EXPECT_EQ(count(HWLOC_OBJ_NUMANODE), countOf(system, DeviceKind::kNuma));
  size_t onTheBus = 0;
  for (const Device& one : system.devices) onTheBus += one.pci && one.kind != DeviceKind::kPci && one.parent >= 0;
  EXPECT_EQ(count(HWLOC_OBJ_PCI_DEVICE), onTheBus);
}

// What it tells at all it tells as it was: who is below whom.
TEST_P(WrittenForHwloc, IsReadAsItWas) {
  const System system = makeKnownSystem(GetParam()), again = read(writeHwlocXml(system));
  for (const DeviceKind kind :
       {DeviceKind::kNuma, DeviceKind::kPci, DeviceKind::kGpu, DeviceKind::kNic, DeviceKind::kPort})
    EXPECT_EQ(countOf(again, kind), countOf(system, kind)) << static_cast<int>(kind);
  for (size_t i = 0; i < system.devices.size(); ++i) {
    const Device& one = system.devices[i];
    if (one.parent < 0 || one.kind == DeviceKind::kPci || one.port) continue;
    const int there = deviceNamed(again, nameOf(system, static_cast<int>(i)));
    ASSERT_GE(there, 0) << nameOf(system, static_cast<int>(i));
    EXPECT_EQ(nameOf(again, again.devices[there].parent), nameOf(system, one.parent));
  }
  EXPECT_EQ(writeHwlocXml(again), writeHwlocXml(read(writeHwlocXml(again))));
}

std::vector<std::string> knownNames() {
  std::vector<std::string> names;
  for (const KnownSystem& one : knownSystems()) names.emplace_back(one.name);
  return names;
}

std::string suffixOf(const testing::TestParamInfo<std::string>& one) {
  std::string name = one.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Systems, WrittenForHwloc, testing::ValuesIn(knownNames()), suffixOf);

TEST(HwlocXml, IsOfOneHost) {
  const auto refusal = [](const std::string& inside) {
    try {
      writeHwlocXml(readNcclXml("<system version=\"1\">" + inside + "</system>", "test.xml"));
      return std::string("it was written");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_NE(refusal(R"(<cpu numaid="0" host_hash="0x1"/><cpu numaid="0" host_hash="0x2"/>)").find("several hosts"),
            std::string::npos);
  EXPECT_NE(refusal("").find("the system is empty"), std::string::npos);
}

TEST(HwlocXml, GivesEveryNodeCoresOfItsOwn) {
  const System system = readNcclXml(
      R"(<system version="1"><cpu numaid="-1" affinity="f"/><cpu numaid="7000" affinity="ff"/><cpu numaid="1"/></system>)",
      "test.xml");
  const std::string text = writeHwlocXml(system);
  EXPECT_NE(readByHwloc(text), nullptr);
  const System again = read(text);
  ASSERT_EQ(countOf(again, DeviceKind::kNuma), 3u);
  EXPECT_EQ(again.devices[0].numa->affinity, "0000000f");
  EXPECT_EQ(again.devices[1].numa->affinity, "000000f0");
  EXPECT_EQ(again.devices[2].numa->affinity, "00000100");
}

TEST(HwlocSets, AreReadAsHwlocWritesThem) {
  EXPECT_EQ(membersOf(*parseHwlocSet("0x00000001,,0x00000003")), (std::vector<int>{0, 1, 64}));
  EXPECT_EQ(membersOf(*parseHwlocSet("0xf...f,0x00000001")), std::vector<int>{0});
  EXPECT_EQ(membersOf(*parseHwlocSet("")), std::vector<int>{});
  for (const char* bad : {"1", "0x", "0x1g", "0x123456789", "0x1;0x2", "-0x1"}) EXPECT_FALSE(parseHwlocSet(bad)) << bad;
  EXPECT_FALSE(parseHwlocSet(std::string(5000, ',')));
}

TEST(HwlocSets, AreWrittenAsTheyAreRead) {
  for (const char* text : {"0x00000001,,0x00000003", "0x0000000f", "0x00000001,0x00000000"})
    EXPECT_EQ(hwlocSetOf(*parseHwlocSet(text)), text);
  EXPECT_EQ(setOf({0, 1, 64}), *parseHwlocSet("0x00000001,,0x00000003"));
  EXPECT_EQ(affinityOf(*parseAffinity("0f,ffffffff")), "0000000f,ffffffff");
  EXPECT_FALSE(parseAffinity("0x1"));
}

}  // namespace
}  // namespace tutti::topology

// Whole machines that are made up, this one, and files that are completed by them.
#include "detect/machine_at_hand.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "catalog/known_systems.h"
#include "detect/complete.h"
#include "detect/hwloc_machine.h"
#include "exchange/hwloc_xml.h"
#include "exchange/nccl_xml.h"
#include "exchange/system_file.h"
#include "topology/machine.h"
#include "unit/machine_tree.h"
#include "unit/topology_facts.h"

namespace tutti::detect {
namespace {

constexpr const char* kNone = "/nowhere/libnvidia-ml.so.1";

class DetectedMachine : public MachineTree {
 protected:
  System seen(const std::string& hwlocXml) const { return detectSystem({hwlocXml, root_, kNone}); }
};

TEST_F(DetectedMachine, IsWhatHwlocAndTheKernelTellTogether) {
  for (const char* name : {"mlx5_0", "mlx5_1"})
    files("/sys/class/infiniband/" + std::string(name) + "/ports/1",
          {{"state", "4: ACTIVE"}, {"rate", "100 Gb/sec (4X EDR)"}, {"link_layer", "InfiniBand"}});
  files("/sys/bus/pci/devices/0000:1c:00.0", {{"max_link_speed", "8.0 GT/s PCIe"}, {"max_link_width", "16"}});
  System box = topology::makeKnownSystem("pcie-box");
  for (topology::Device& one : box.devices) {
    if (one.port) one.port->ofNic = 1;
    if (one.gpu) one.pci->vendor = "0x10de";
  }
  const System system = seen(writeHwlocXml(box));
  EXPECT_EQ(pathType(system, "0000:1a:00.0", "mlx5_0"), "PIX");
  EXPECT_EQ(system.devices[deviceNamed(system, "mlx5_0")].pci->speed, "8.0 GT/s PCIe");
  EXPECT_DOUBLE_EQ(bandwidth(system, "0000:1a:00.0", "mlx5_0"), 12);
  EXPECT_EQ(timesSaid(system.remarks, "no network speed"), 0);
  EXPECT_EQ(timesSaid(system.remarks, "NVML is missing"), 1);
}

TEST_F(DetectedMachine, WithoutSysIsItsCores) {
  const System system = seen("<topology/>");
  EXPECT_EQ(countOf(system, DeviceKind::kNuma), 1u);
  EXPECT_EQ(timesSaid(system.remarks, "/sys tells of no devices here"), 1);
  EXPECT_EQ(timesSaid(system.remarks, "NVML"), 0);
}

TEST_F(DetectedMachine, WithoutHwlocIsTheCoresOfThisProcess) {
  const System system = seen("no XML");
  EXPECT_EQ(countOf(system, DeviceKind::kNuma), topology::detectMachine().nodes.size());
  EXPECT_NE(system.devices[0].numa->affinity, "");
  EXPECT_EQ(timesSaid(system.remarks, "what hwloc tells of this machine: no XML at line 1"), 1);
}

TEST_F(DetectedMachine, SaysThatItHasNoNic) {
  folder("/sys/class/net/lo");
  EXPECT_EQ(timesSaid(seen("<topology/>").remarks, "no NIC that is up was found"), 1);
}

TEST(ThisMachine, IsDetected) {
  const System system = detectSystem();
  EXPECT_GE(countOf(system, DeviceKind::kNuma), 1u);
  EXPECT_NE(system.devices[0].numa->affinity, "");
  for (const int gpu : devicesOf(system, DeviceKind::kGpu)) EXPECT_TRUE(system.devices[gpu].pci);
}

TEST(ThisMachine, IsTheSameByItsFiles) {
  const System system = detectSystem();
  EXPECT_EQ(topology::readNcclXml(writeNcclXml(system), "again").devices.size(), system.devices.size());
  const System byHwloc = topology::readSystem(hwlocXmlOfThisMachine(), "hwloc");
  EXPECT_EQ(countOf(byHwloc, DeviceKind::kNuma), countOf(system, DeviceKind::kNuma));
}

System devicesIn(const std::string& inside) {
  return topology::readDevices("<system version=\"1\">" + inside + "</system>", "partial.xml");
}

// A GPU and a NIC behind a switch, another GPU beside it.
System found() {
  System system = topology::readDevices(
      R"(<system version="1"><cpu numaid="0" affinity="0000000f" arch="x86_64" vendor="AuthenticAMD" familyid="25">
      <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" vendor="0x10de" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="80"><nvlink target="0000:04:00.0" count="4"/></gpu></pci>
      <pci busid="0000:03:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
      <nic><net name="mlx5_0" port="1" speed="200000" guid="0x1"/></nic></pci></pci>
      <pci busid="0000:04:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="80"><nvlink target="0000:02:00.0" count="4"/></gpu></pci></cpu></system>)",
      "found.xml");
  system.remarks = {"as it was found"};
  return system;
}

System completedFrom(const std::string& inside) {
  System system = completed(devicesIn(inside), found());
  connect(system);
  return system;
}

TEST(CompletedFile, HasWhatItLeftOut) {
  const System system = completedFrom(R"(<cpu numaid="0"/>)");
  EXPECT_EQ(system.devices[0].numa->vendor, "AuthenticAMD");
  EXPECT_EQ(pathType(system, "GPU 0", "mlx5_0"), "PIX");
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 1"), "NVL");
  EXPECT_EQ(timesSaid(system.remarks, "added, since it is on this machine: GPU 0, mlx5_0, GPU 1"), 1);
  EXPECT_EQ(timesSaid(system.remarks, "as it was found"), 1);
}

TEST(CompletedFile, OfNothingIsTheMachine) { EXPECT_EQ(countOf(completedFrom(""), DeviceKind::kGpu), 2u); }

// As clouds do: switches that the virtual machine hides, with what the places are and no more.
TEST(CompletedFile, KeepsWhatItSays) {
  const System system = completedFrom(
      R"(<cpu numaid="0" affinity="000000ff"><pci busid="ffff:ff:01.0" class="0x060400" link_speed="32 GT/s" link_width="16">
      <pci busid="0000:04:00.0" class="0x030200" link_speed="32 GT/s" link_width="16"/>
      <pci busid="0000:03:00.0" class="0x020700"/></pci></cpu>)");
  EXPECT_EQ(system.devices[0].numa->affinity, "000000ff");
  EXPECT_EQ(pathType(system, "GPU 1", "mlx5_0"), "PIX") << "the file's switch, not the machine's";
  EXPECT_EQ(system.devices[deviceNamed(system, "GPU 1")].pci->speed, "32 GT/s");
  EXPECT_EQ(system.devices[deviceNamed(system, "mlx5_0")].pci->speed, "16.0 GT/s PCIe");
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 1"), "NVL");
  EXPECT_EQ(countOf(system, DeviceKind::kPci), 2u) << "the machine's switch comes with the GPU that is below it";
  EXPECT_EQ(timesSaid(system.remarks, "nothing is said of it"), 0);
  EXPECT_EQ(timesSaid(system.remarks, "added, since it is on this machine: GPU 0"), 1);
}

TEST(CompletedFile, TakesWhatHasNoClassForWhatItIs) {
  const System system = completedFrom(R"(<cpu numaid="0"><pci busid="0000:02:00.0"/></cpu>)");
  EXPECT_EQ(countOf(system, DeviceKind::kGpu), 2u);
  EXPECT_EQ(timesSaid(system.remarks, "no class"), 0);
}

TEST(CompletedFile, KeepsThePortsOfANic) {
  const System system = completedFrom(
      R"(<cpu numaid="0"><pci busid="0000:03:00.0"><nic><net name="mlx5_0" dev="3"/><net name="other"/></nic></pci></cpu>)");
  ASSERT_EQ(countOf(system, DeviceKind::kPort), 2u);
  const topology::Port& port = *system.devices[devicesOf(system, DeviceKind::kPort)[0]].port;
  EXPECT_EQ(port.number, 3);
  EXPECT_EQ(port.megabits, 200'000);
  EXPECT_EQ(port.guid, "0x1");
}

TEST(CompletedFile, KnowsANicByItsPort) {
  const System system = completedFrom(R"(<cpu numaid="0"><nic><net name="mlx5_0"/></nic></cpu>)");
  EXPECT_EQ(countOf(system, DeviceKind::kNic), 1u);
}

TEST(CompletedFile, SaysWhatIsNotHere) {
  const System system = completedFrom(R"(<cpu numaid="0"><pci busid="0000:77:00.0" class="0x030200"/></cpu>)");
  EXPECT_EQ(timesSaid(system.remarks, "in the file, but not found on this machine: GPU 0000:77:00.0"), 1);
}

TEST(CompletedFile, IsOfOneHost) {
  EXPECT_THROW(completedFrom(R"(<cpu numaid="0" host_hash="0x1"/><cpu numaid="0" host_hash="0x2"/>)"), Error);
}

}  // namespace
}  // namespace tutti::detect

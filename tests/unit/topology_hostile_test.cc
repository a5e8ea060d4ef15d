// Files that no machine has: each ends in an error that says what is wrong with it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "exchange/nccl_xml.h"
#include "exchange/system_file.h"
#include "exchange/xml_text.h"
#include "topology/paths.h"
#include "topology/warnings.h"

namespace tutti::topology {
namespace {

std::string refusalOf(const std::string& text) {
  try {
    const System system = readSystem(text, "bad.xml");
    return fmt::format("it was read, with {} devices", system.devices.size());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
}

std::string inSystem(const std::string& inside) {
  return "<system version=\"1\"><cpu numaid=\"0\">" + inside + "</cpu></system>";
}

void expectRefusal(const std::string& text, const std::string& part) {
  const std::string refusal = refusalOf(text);
  EXPECT_EQ(refusal.find("bad.xml: "), 0u) << refusal;
  EXPECT_NE(refusal.find(part), std::string::npos) << refusal;
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(HostileXml, IsNoXml) {
  expectRefusal("", "no XML");
  expectRefusal("<system>\n<cpu>\n</system>", "no XML at line 3");
  expectRefusal(std::string("<system>\0</system>", 18), "zero byte");
  expectRefusal("<graphs version=\"1\"/>", "begins with <graphs version=\"1\">");
}

TEST(HostileXml, IsLarge) {
  expectRefusal(std::string(kMostXmlBytes + 1, ' '), "more than 4194304 bytes");
  expectRefusal(inSystem(repeated("<a/>", kMostXmlElements)), "more than 65536 elements");
  std::string nodes;
  for (size_t i = 0; i <= kMostNumaNodes; ++i) nodes += fmt::format("<cpu numaid=\"{}\"/>", i);
  expectRefusal("<system version=\"1\">" + nodes + "</system>", "256 memory nodes at most");
  std::string devices;
  for (int i = 0; i < 1100; ++i) devices += fmt::format("<pci busid=\"{:04x}:00:00.0\"/>", i);
  expectRefusal(inSystem(devices), "more than 1024 devices");
  std::string planes;
  for (int i = 0; i < 1100; ++i)
    planes += fmt::format("<nvlink target=\"{:04x}:01:00.0\" count=\"1\" tclass=\"0x068000\"/>", i);
  expectRefusal(inSystem("<pci busid=\"0:00:00.0\"><gpu>" + planes + "</gpu></pci>"), "1024 devices at most");
}

TEST(HostileXml, IsDeep) {
  expectRefusal(repeated("<a>", 100'000) + repeated("</a>", 100'000), "more than");
  expectRefusal(inSystem(repeated("<a>", 40) + repeated("</a>", 40)), "nested more than 32 deep");
}

TEST(HostileXml, HasEntities) {
  expectRefusal("<!DOCTYPE a [<!ENTITY x \"aaaa\"><!ENTITY y \"&x;&x;&x;\">]><system version=\"&y;\"/>", "DOCTYPE");
  expectRefusal("<!DOCTYPE system SYSTEM \"file:///etc/passwd\"><system/>", "DOCTYPE");
}

TEST(HostileXml, HasOneBusIdTwice) {
  expectRefusal(inSystem("<pci busid=\"0000:3b:00.0\"/><pci busid=\"0000:3B:00.0\"/>"), "two devices have the bus id");
  expectRefusal(inSystem("<pci busid=\"3b\"/>"), "no PCI bus id");
  expectRefusal(inSystem("<pci/>"), "no PCI bus id");
  expectRefusal("<system><cpu numaid=\"1\"/><cpu numaid=\"1\"/></system>", "is there twice");
}

TEST(HostileXml, HasNumbersThatNothingHas) {
  expectRefusal("<system><cpu numaid=\"-2\"/></system>", "numaid=\"-2\" must be a whole number from -1");
  expectRefusal("<system><cpu numaid=\"99999999999999999999\"/></system>", "must be a whole number");
  expectRefusal("<system><cpu numaid=\"one\"/></system>", "must be a whole number");
  expectRefusal(inSystem("<pci busid=\"0000:3b:00.0\" link_width=\"-16\"/>"), "link_width=\"-16\"");
  expectRefusal(inSystem("<nic><net speed=\"-1\"/></nic>"), "speed=\"-1\"");
  expectRefusal(
      inSystem("<pci busid=\"0000:3b:00.0\"><gpu><nvlink target=\"0:0:0.0\" count=\"99999999\"/></gpu></pci>"),
      "count=\"99999999\"");
}

TEST(HostileXml, HasDevicesThatCannotBe) {
  expectRefusal(inSystem("<pci busid=\"0000:3b:00.0\"><gpu/><gpu/></pci>"), "two <gpu>");
  expectRefusal(inSystem("<pci busid=\"0000:3b:00.0\"><nic/><nic/></pci>"), "two <nic>");
  expectRefusal(inSystem("<pci busid=\"0000:3b:00.0\"><gpu/><nic/></pci>"), "both a GPU and a NIC");
}

TEST(HostileXml, HasCirclesOfSwitches) {
  expectRefusal(inSystem("<pci busid=\"0000:3b:00.0\"><pcilink target=\"0000:3b:00.0\"/></pci>"), "closes a circle");
  expectRefusal(inSystem("<pci busid=\"0000:3b:00.0\"><pci busid=\"0000:3c:00.0\">"
                         "<pcilink target=\"0000:3b:00.0\"/></pci></pci>"),
                "closes a circle");
}

// Switches that are linked with each other in a ring, which is no circle of the tree: paths end all the same.
TEST(HostileXml, MayHaveARingOfPeers) {
  std::string text;
  for (int i = 0; i < 16; ++i)
    text += fmt::format("<pci busid=\"{:04x}:00:00.0\"><pcilink target=\"{:04x}:00:00.0\"/></pci>", i, (i + 1) % 16);
  const System system = readNcclXml(inSystem(text), "ring.xml");
  EXPECT_EQ(Paths(system).between(1, 9).type, PathType::kSwitches);
}

std::string inMachine(const std::string& inside) {
  return R"(<topology version="2.0"><object type="Machine" cpuset="0x1" nodeset="0x1">)" + inside +
         "</object></topology>";
}

std::string pciObject(const std::string& busId) {
  return R"(<object type="PCIDev" pci_type="0302 [10de:20b0] [10de:134f] a1" pci_busid=")" + busId + "\"/>";
}

TEST(HostileHwlocXml, IsOfAnotherVersion) {
  expectRefusal("<topology version=\"3.0\"/>", "the version \"3.0\" of hwloc's format is unknown");
  expectRefusal("<topology version=\"\x1b[2J\"/>", "the version \"\\x1b[2J\"");
}

TEST(HostileHwlocXml, HasEntities) {
  expectRefusal("<!DOCTYPE topology SYSTEM \"file:///etc/passwd\"><topology/>", "DOCTYPE");
  expectRefusal("<!DOCTYPE topology SYSTEM \"hwloc2.dtd\" [<!ENTITY x \"aaaa\">]><topology version=\"&x;\"/>",
                "DOCTYPE");
}

TEST(HostileHwlocXml, IsLarge) {
  std::string nodes, devices;
  for (size_t i = 0; i <= kMostNumaNodes; ++i)
    nodes += fmt::format(R"(<object type="NUMANode" os_index="{}" cpuset="0x{:08x}{}"/>)", i, 1U << i % 32,
                         std::string(i / 32, ','));
  expectRefusal(inMachine(nodes), "more than 256 memory nodes");
  for (int i = 0; i < 1100; ++i) devices += pciObject(fmt::format("{:04x}:00:00.0", i));
  expectRefusal(inMachine(devices), "more than 1024 devices");
  expectRefusal(inMachine(repeated("<object/>", kMostXmlElements)), "more than 65536 elements");
}

TEST(HostileHwlocXml, IsDeep) {
  expectRefusal(inMachine(repeated("<object type=\"Bridge\">", 40) + repeated("</object>", 40)),
                "nested more than 32 deep");
}

TEST(HostileHwlocXml, HasNumbersThatNothingHas) {
  expectRefusal(inMachine("<object type=\"NUMANode\" os_index=\"-1\"/>"), "os_index=\"-1\" must be a whole number");
  expectRefusal(inMachine("<object type=\"NUMANode\" os_index=\"1\"/><object type=\"NUMANode\" os_index=\"1\"/>"),
                "is there twice");
  expectRefusal(inMachine(pciObject("3b")), "no PCI bus id");
  expectRefusal(inMachine(pciObject("0000:3b:00.0") + pciObject("0000:3B:00.0")), "two devices have the bus id");
}

// A set of 65536 members, and as many devices as an element has room for, that are near it.
TEST(HostileHwlocXml, IsNotSlow) {
  const std::string set = "0xffffffff" + repeated(",0xffffffff", 2047);
  const std::string nodes = R"(<object type="NUMANode" os_index="0" cpuset=")" + set + "\"/>";
  const std::string text = R"(<topology version="2.0"><object type="Machine" cpuset=")" + set + "\" nodeset=\"" + set +
                           "\">" + nodes + repeated(R"(<object type="Bridge"/>)", 60'000) + "</object></topology>";
  EXPECT_EQ(readSystem(text, "wide.xml").devices.size(), 1u);
}

// Speeds, sets and kinds that are none are as good as missing.
TEST(HostileHwlocXml, MayBeNonsense) {
  const System system = readSystem(
      inMachine(R"(<object type="NUMANode" cpuset="all" nodeset="-1"/><object type="PCIDev" pci_type="0302 [" )"
                R"(pci_busid="0000:01:00.0" pci_link_speed="nan"/><object type="PCIDev" pci_type="" pci_busid="x"/>)"
                R"(<object type="OSDev" osdev_type="99" name="x"/><object/><other/>)"),
      "nonsense.xml");
  EXPECT_EQ(system.devices.size(), 2u);
  EXPECT_EQ(system.devices[1].pci->width, 0);
}

TEST(HostileXml, DoesNotReachTheTerminal) {
  const std::string refusal = refusalOf("<system><cpu numaid=\"\x1b[2J\"/></system>");
  EXPECT_EQ(refusal.find('\x1b'), std::string::npos) << refusal;
}

TEST(HostileXml, IsNoFile) {
  try {
    readSystemFile("/nowhere/topology.xml");
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kSystem);
    EXPECT_NE(std::string(error.what()).find("/nowhere/topology.xml cannot be read"), std::string::npos);
  }
}

}  // namespace
}  // namespace tutti::topology

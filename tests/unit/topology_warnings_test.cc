// What is found wrong with a system.
#include <gtest/gtest.h>

#include "catalog/known_systems.h"
#include "exchange/nccl_xml.h"
#include "topology/warnings.h"
#include "unit/topology_facts.h"

namespace tutti::topology {
namespace {

// One of eight GPUs has lost a row of its NVLinks.
TEST(TopologyWarnings, TellOfUnequalNvLinks) {
  std::string text = writeNcclXml(makeKnownSystem("hgx-h100"));
  const std::string row = "<nvlink target=\"0000:07:00.0\" count=\"5\" tclass=\"0x068000\" />";
  ASSERT_NE(text.find(row), std::string::npos) << text;
  text.erase(text.find(row), row.size());
  const auto warnings = warningsOf(readNcclXml(text, "lost.xml"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("GPU 0 has 13; GPU 1, GPU 2, GPU 3, GPU 4, GPU 5, GPU 6, GPU 7 has 18"), std::string::npos)
      << warnings[0];
}

TEST(TopologyWarnings, TellOfAHiddenFabric) {
  const System system = readNcclXml(
      R"(<system version="1"><cpu numaid="-1"><pci busid="0000:05:00.0" class="0x030200" link_speed="16.0 GT/s PCIe"
      link_width="16"><gpu dev="0" sm="90"><nvlink target="fffffff:ff:ff.0" count="18"/></gpu></pci></cpu></system>)",
      "vm.xml");
  EXPECT_EQ(timesSaid(warningsOf(system), "the NVLinks of 1 GPUs lead to a fabric that is hidden"), 1);
}

TEST(TopologyWarnings, TellOfANicWithNoGpuNear) {
  const System system = readNcclXml(
      R"(<system version="1"><cpu numaid="0"><pci busid="0000:05:00.0" class="0x030200" link_speed="16 GT/s"
      link_width="16"><gpu dev="0" sm="90"/></pci></cpu><cpu numaid="1"><nic><net name="far" speed="100000"/></nic>
      </cpu></system>)",
      "far.xml");
  EXPECT_EQ(timesSaid(warningsOf(system), "far is at NUMA 1, where no GPU is"), 1);
}

TEST(TopologyWarnings, TellOfIncredibleLinks) {
  const auto warnings = warningsOf(makeKnownSystem("ibm-hgx-h100"));
  EXPECT_EQ(timesSaid(warnings, "\"2.5 GT/s PCIe\" x1 (0.19 GB/s) is said of the link above switch 0000:a1:00.0, "), 1);
  EXPECT_EQ(timesSaid(warnings, "switch 0000:e7:00.0, yet a device below has 48.00 GB/s"), 1);
}

}  // namespace
}  // namespace tutti::topology

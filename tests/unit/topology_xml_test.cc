// Files as users have them: partial, odd, and with what this version does not know.
#include <gtest/gtest.h>

#include "exchange/nccl_xml.h"
#include "unit/topology_facts.h"

namespace tutti::topology {
namespace {

System read(const std::string& inside, const std::string& version = "1") {
  return readNcclXml("<system version=\"" + version + "\">" + inside + "</system>", "test.xml");
}

std::string cpu(const std::string& inside, const std::string& number = "0") {
  return "<cpu numaid=\"" + number + "\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">" +
         inside + "</cpu>";
}

std::string gpu(const std::string& busId, const std::string& link, const std::string& inside = "") {
  return "<pci busid=\"" + busId + "\" class=\"0x030200\" " + link + "><gpu dev=\"0\" sm=\"90\">" + inside +
         "</gpu></pci>";
}

// Of a GPU with that link to its processor.
double speed(const std::string& link) {
  const System system = read(cpu(gpu("0000:01:00.0", link)));
  return bandwidth(system, "GPU 0", "NUMA 0");
}

TEST(NcclXml, ReadsEverySpellingOfASpeed) {
  EXPECT_DOUBLE_EQ(speed(R"(link_speed="2.5 GT/s" link_width="1")"), 15.0 / 80);
  EXPECT_DOUBLE_EQ(speed(R"(link_speed="8 GT/s" link_width="16")"), 12);
  EXPECT_DOUBLE_EQ(speed(R"(link_speed="16 GT/s" link_width="16")"), 24);
  EXPECT_DOUBLE_EQ(speed(R"(link_speed="16.0 GT/s PCIe" link_width="8")"), 12);
  EXPECT_DOUBLE_EQ(speed(R"(link_speed="32.0 GT/s PCIe" link_width="16")"), 48);
}

TEST(NcclXml, AssumesWhatIsMissingAndSaysSo) {
  EXPECT_DOUBLE_EQ(speed(R"(link_speed="" link_width="0")"), 12);
  EXPECT_DOUBLE_EQ(speed(R"(link_speed="fast" link_width="16")"), 12);
  EXPECT_DOUBLE_EQ(speed(R"(link_speed="32 GT/s")"), 48);
  const System system = read(cpu(gpu("0000:01:00.0", "")));
  EXPECT_EQ(timesSaid(system.remarks, "no link_speed; 8 GT/s is assumed"), 1);
  EXPECT_EQ(timesSaid(system.remarks, "no link_width; x16 is assumed"), 1);
}

TEST(NcclXml, ReadsWhatCloudsLeaveOut) {
  const System system = read(cpu(R"(<!-- a switch --><pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s"
      link_width="16"><pci busid="0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
      <pci busid="0101:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/></pci>)"));
  EXPECT_EQ(pathType(system, "0001:00:00.0", "0101:00:00.0"), "PIX");
  EXPECT_EQ(timesSaid(system.remarks, "nothing is said of it but its place on the bus"), 2);
}

TEST(NcclXml, ReadsANicBelowTheProcessor) {
  const System system = read(cpu(R"(<nic><net name="eth0" dev="0" speed="100000" gdr="0"/></nic>)" +
                                 gpu("0000:01:00.0", R"(link_speed="8 GT/s" link_width="16")")));
  EXPECT_EQ(pathType(system, "GPU 0", "eth0"), "PHB");
  EXPECT_EQ(countOf(system, DeviceKind::kPort), 1u);
}

TEST(NcclXml, SaysThatANodeHasNoNumber) {
  const System system = read(cpu(gpu("0000:01:00.0", R"(link_speed="8 GT/s" link_width="16")"), "-1"));
  EXPECT_EQ(timesSaid(system.remarks, "a memory node has no number"), 1);
}

TEST(NcclXml, DoesNotCountLinksToItself) {
  const System system = read(cpu(gpu("0001:00:00.0", R"(link_speed="" link_width="0")",
                                     R"(<nvlink target="0001:00:00.0" count="12" tclass="0x030200"/>)")));
  EXPECT_EQ(timesSaid(system.remarks, "lead to itself"), 1);
  for (const Link& link : system.links) EXPECT_NE(link.kind, LinkKind::kNvLink);
}

TEST(NcclXml, CountsALinkThatBothEndsTellOnce) {
  const std::string link = R"(link_speed="16 GT/s" link_width="16")";
  const System system = read(cpu(gpu("0000:01:00.0", link, R"(<nvlink target="0000:02:00.0" count="4"/>)") +
                                 gpu("0000:02:00.0", link, R"(<nvlink target="0000:01:00.0" count="4"/>)")));
  EXPECT_DOUBLE_EQ(bandwidth(system, "0000:01:00.0", "0000:02:00.0"), 4 * 20.6);
}

TEST(NcclXml, KeepsWhatItDoesNotKnow) {
  const std::string inside =
      cpu(R"(<pci busid="0000:01:00.0" class="0x038000" shape="round"><gpu dev="0" gcn="gfx942">)"
          R"(<xgmi target="0000:02:00.0" count="1" tclass="0x038000"><deep a="1"/></xgmi></gpu><odd>text</odd></pci>)"
          R"(<nic colour="red"><net name="a&quot;b" dev="0" latency="0.5" guid="0x1"/></nic><later x="1"/>)");
  const System system = read(inside, "2");
  EXPECT_EQ(timesSaid(system.remarks, "<xgmi target=\"0000:02:00.0\"> in <gpu dev=\"0\"> is kept"), 1);
  const std::string text = writeNcclXml(system);
  for (const char* part : {"version=\"2\"", "shape=\"round\"", "gcn=\"gfx942\"",
                           "<xgmi target=\"0000:02:00.0\" count=\"1\"", "<deep a=\"1\"", "<odd>text</odd>",
                           "colour=\"red\"", "name=\"a&quot;b\"", "latency=\"0.5\"", "guid=\"0x1\"", "<later x=\"1\""})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  const System again = readNcclXml(text, "again");
  EXPECT_EQ(again.devices, system.devices);
  EXPECT_EQ(again.remarks.size(), system.remarks.size());  // in another order: what is unknown comes first
  EXPECT_EQ(writeNcclXml(again), text);
}

TEST(NcclXml, KeepsLinksBesideTheTree) {
  const std::string link = R"(class="0x060400" link_speed="16 GT/s" link_width="16")";
  const System system = read(cpu("<pci busid=\"0000:10:00.0\" " + link +
                                 "><pcilink target=\"0000:20:00.0\" a=\"1\"/></pci>"
                                 "<pci busid=\"0000:20:00.0\" " +
                                 link + "><pcilink target=\"0000:10:00.0\"/></pci>"));
  EXPECT_EQ(pathType(system, "0000:10:00.0", "0000:20:00.0"), "PXB");
  EXPECT_EQ(readNcclXml(writeNcclXml(system), "again"), system);
}

TEST(NcclXml, KeepsAnEmptySystem) {
  EXPECT_EQ(timesSaid(read("").remarks, "it has no <cpu>"), 1);
  EXPECT_EQ(timesSaid(read("", "7").remarks, "the version \"7\" of the format is unknown"), 1);
}

}  // namespace
}  // namespace tutti::topology

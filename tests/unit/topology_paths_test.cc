// Which way devices reach each other, where a small system leaves no doubt.
#include <gtest/gtest.h>

#include "exchange/nccl_xml.h"
#include "unit/topology_facts.h"

namespace tutti::topology {
namespace {

constexpr const char* kGen4 = R"( link_speed="16 GT/s" link_width="16")";

System small(const std::string& inside) {
  return readNcclXml("<system version=\"1\">" + inside + "</system>", "small");
}

std::string device(const std::string& busId, const std::string& inside) {
  return "<pci busid=\"" + busId + "\" class=\"0x060400\"" + kGen4 + ">" + inside + "</pci>";
}

std::string gpuAt(const std::string& busId, int number, const std::string& inside = "") {
  return device(busId, "<gpu dev=\"" + std::to_string(number) + "\" sm=\"80\">" + inside + "</gpu>");
}

std::string nvlink(const std::string& busId) { return "<nvlink target=\"" + busId + "\" count=\"2\"/>"; }

std::string node(int number, const std::string& inside, const std::string& host = "") {
  return "<cpu numaid=\"" + std::to_string(number) + "\" vendor=\"AuthenticAMD\" host_hash=\"" + host + "\">" + inside +
         "</cpu>";
}

TEST(Paths, NoneIsWithinADevice) {
  const System system = small(node(0, gpuAt("0000:01:00.0", 0)));
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 0"), "LOC");
  EXPECT_EQ(pathType(system, "GPU 0", "NUMA 0"), "PHB");
}

// GPU 0 - GPU 1 - GPU 2 in a row, GPU 3 beyond that: no more than one relays.
TEST(Paths, OneGpuRelaysNvLinks) {
  const System system = small(node(0, gpuAt("0000:01:00.0", 0, nvlink("0000:02:00.0")) +
                                          gpuAt("0000:02:00.0", 1, nvlink("0000:01:00.0") + nvlink("0000:03:00.0")) +
                                          gpuAt("0000:03:00.0", 2, nvlink("0000:02:00.0") + nvlink("0000:04:00.0")) +
                                          gpuAt("0000:04:00.0", 3, nvlink("0000:03:00.0"))));
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 1"), "NVL");
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 2"), "NVB");
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 3"), "PHB");
  EXPECT_DOUBLE_EQ(bandwidth(system, "GPU 0", "GPU 2"), 40);
}

TEST(Paths, BetweenNodesTheSocketsAreTheNeck) {
  const System system = small(node(0, gpuAt("0000:01:00.0", 0)) + node(1, gpuAt("0000:02:00.0", 1)));
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 1"), "SYS");
  EXPECT_DOUBLE_EQ(bandwidth(system, "GPU 0", "GPU 1"), 16);
  const Path there = Paths(system).between(deviceNamed(system, "GPU 0"), deviceNamed(system, "GPU 1"));
  EXPECT_EQ(there.hops, 3);
}

TEST(Paths, C2cGoesToTheProcessor) {
  const System system = small(node(0, gpuAt("0000:01:00.0", 0, "<c2c bw=\"44712\" count=\"5\"/>")));
  EXPECT_EQ(pathType(system, "GPU 0", "NUMA 0"), "C2C");
  EXPECT_NEAR(bandwidth(system, "GPU 0", "NUMA 0"), 223.56, 1e-9);
}

TEST(Paths, HostsMeetInTheNetworkOnly) {
  const auto host = [](const char* busId, int number, const char* nic) {
    return gpuAt(busId, number) + device(nic, R"(<nic><net name="p" dev="0" speed="100000"/></nic>)");
  };
  const System system = small(node(0, host("0000:01:00.0", 0, "0000:02:00.0"), "a") +
                              node(0, host("0000:03:00.0", 1, "0000:04:00.0"), "b"));
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 1"), "NET");
  EXPECT_DOUBLE_EQ(bandwidth(system, "GPU 0", "GPU 1"), 12);
  const System apart = small(node(0, gpuAt("0000:01:00.0", 0), "a") + node(0, gpuAt("0000:03:00.0", 1), "b"));
  EXPECT_EQ(pathType(apart, "GPU 0", "GPU 1"), "DIS");
}

// Two hosts that have the same bus ids, each with its own NVSwitch; then with a fabric in common.
TEST(Paths, HostsShareAHiddenFabricOnly) {
  const auto hosts = [](const std::string& target) {
    const std::string link = "<nvlink target=\"" + target + "\" count=\"2\" tclass=\"0x068000\"/>";
    std::string all;
    for (int host = 0; host < 2; ++host)
      all += node(0, gpuAt("0000:01:00.0", 2 * host, link) + gpuAt("0000:02:00.0", 2 * host + 1, link),
                  std::to_string(host));
    return small(all);
  };
  const System own = hosts("0000:c4:00.0"), shared = hosts("fffffff:ff:ff.0");
  EXPECT_EQ(pathType(own, "GPU 0", "GPU 1"), "NVL");
  EXPECT_EQ(pathType(own, "GPU 2", "GPU 3"), "NVL");
  EXPECT_EQ(pathType(own, "GPU 0", "GPU 2"), "DIS");
  EXPECT_EQ(pathType(shared, "GPU 0", "GPU 2"), "NVL");
}

TEST(Paths, AreTheSameBothWays) {
  const System system = small(node(0, gpuAt("0000:01:00.0", 0, nvlink("fffffff:ff:ff.0")) +
                                          device("0000:05:00.0", R"(<nic><net name="p" speed="100000"/></nic>)")) +
                              node(1, gpuAt("0000:02:00.0", 1, nvlink("fffffff:ff:ff.0"))));
  const Paths paths(system);
  for (int a = 0; a < static_cast<int>(system.devices.size()); ++a)
    for (int b = 0; b < a; ++b) EXPECT_EQ(paths.between(a, b), paths.between(b, a)) << a << " " << b;
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 1"), "NVL");
  EXPECT_EQ(pathType(system, "GPU 1", "hidden fabric"), "NVL");
}

}  // namespace
}  // namespace tutti::topology

// The known systems are as their makers describe them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "catalog/known_systems.h"
#include "exchange/nccl_xml.h"
#include "topology/warnings.h"
#include "unit/topology_facts.h"

namespace tutti::topology {
namespace {

struct Shape {
  const char* name;
  size_t nodes, switches, gpus, nics, nvswitches;
  int nvlinks;  // of each GPU
};
constexpr Shape kShapes[] = {
    {"dgx-a100", 8, 4, 8, 8, 6, 12},     {"hgx-h100", 2, 8, 8, 8, 4, 18},   {"azure-ndv2", 2, 0, 8, 1, 0, 6},
    {"azure-ndv4", 4, 4, 8, 8, 6, 12},   {"azure-ndv5", 2, 8, 8, 8, 4, 18}, {"azure-hbv3", 4, 0, 0, 1, 0, 0},
    {"azure-hc", 2, 0, 0, 1, 0, 0},      {"aws-p4d", 2, 4, 8, 4, 6, 12},    {"aws-p5", 2, 8, 8, 32, 4, 18},
    {"ibm-hgx-h100", 2, 8, 8, 8, 4, 18}, {"pcie-box", 2, 6, 8, 2, 0, 0},    {"ethernet-host", 2, 0, 0, 1, 0, 0}};

int nvlinksAt(const System& system, int gpu) {
  int count = 0;
  for (const Link& link : system.links)
    if (link.kind == LinkKind::kNvLink && (link.a == gpu || link.b == gpu)) count += link.count;
  return count;
}

TEST(KnownSystems, HaveTheirCounts) {
  ASSERT_EQ(knownSystems().size(), std::size(kShapes));
  for (const Shape& shape : kShapes) {
    const System system = makeKnownSystem(shape.name);
    SCOPED_TRACE(shape.name);
    EXPECT_EQ(countOf(system, DeviceKind::kNuma), shape.nodes);
    EXPECT_EQ(countOf(system, DeviceKind::kPci), shape.switches);
    EXPECT_EQ(countOf(system, DeviceKind::kGpu), shape.gpus);
    EXPECT_EQ(countOf(system, DeviceKind::kNic), shape.nics);
    EXPECT_EQ(countOf(system, DeviceKind::kNvSwitch), shape.nvswitches);
    for (const int gpu : devicesOf(system, DeviceKind::kGpu)) EXPECT_EQ(nvlinksAt(system, gpu), shape.nvlinks);
  }
}

// The order trap: memory node 0 has the third and fourth GPU by bus id.
TEST(KnownSystems, AzureNdv4HasItsOrder) {
  const System system = makeKnownSystem("azure-ndv4");
  constexpr const char* kAt[4][4] = {{"0003:00:00.0", "0004:00:00.0", "0103:00:00.0", "0104:00:00.0"},
                                     {"0001:00:00.0", "0002:00:00.0", "0101:00:00.0", "0102:00:00.0"},
                                     {"000d:00:00.0", "000e:00:00.0", "0107:00:00.0", "0108:00:00.0"},
                                     {"000b:00:00.0", "000c:00:00.0", "0105:00:00.0", "0106:00:00.0"}};
  for (int node = 0; node < 4; ++node) {
    const std::string bridge = fmt::format("ffff:ff:{:02x}.0", node + 1);
    for (const char* busId : kAt[node]) {
      ASSERT_GE(deviceNamed(system, busId), 0) << busId;
      EXPECT_EQ(numaNumberOf(system, busId), node) << busId;
      EXPECT_EQ(system.devices[deviceNamed(system, busId)].parent, deviceNamed(system, bridge)) << busId;
    }
  }
  EXPECT_EQ(deviceNamed(system, "GPU 2"), deviceNamed(system, "0003:00:00.0"));
  EXPECT_EQ(deviceNamed(system, "GPU 4"), deviceNamed(system, "000b:00:00.0"));
  EXPECT_EQ(deviceNamed(system, "GPU 7"), deviceNamed(system, "000e:00:00.0"));
  EXPECT_EQ(pathType(system, "GPU 2", "mlx5_ib2"), "PIX");
  EXPECT_DOUBLE_EQ(bandwidth(system, "GPU 2", "mlx5_ib2"), 24);
  EXPECT_EQ(pathType(system, "GPU 2", "mlx5_ib0"), "PXN");  // over NVLink to GPU 0 or 1
  EXPECT_EQ(pathType(system, "mlx5_ib2", "mlx5_ib0"), "SYS");
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 7"), "NVL");
  EXPECT_DOUBLE_EQ(bandwidth(system, "GPU 0", "GPU 7"), 240);  // 12 of 20 GB/s
}

TEST(KnownSystems, AzureNdv5HasOneGpuANic) {
  const System system = makeKnownSystem("azure-ndv5");
  constexpr const char* kGpus[] = {"0001", "0002", "0003", "0008", "0009", "000a", "000b", "000c"};
  for (int i = 0; i < 8; ++i) {
    const std::string gpu = fmt::format("{}:00:00.0", kGpus[i]), nic = fmt::format("{:04x}:00:00.0", 0x101 + i);
    EXPECT_EQ(deviceNamed(system, gpu), deviceNamed(system, fmt::format("GPU {}", i)));
    EXPECT_EQ(numaNumberOf(system, gpu), i / 4);
    EXPECT_EQ(pathType(system, gpu, nic), "PIX");
    EXPECT_DOUBLE_EQ(bandwidth(system, gpu, nic), 48);
    EXPECT_EQ(system.devices[deviceNamed(system, gpu)].parent,
              deviceNamed(system, fmt::format("ffff:ff:{:02x}.0", i + 1)));
  }
  EXPECT_NEAR(bandwidth(system, "GPU 0", "GPU 5"), 370.8, 1e-9);  // 18 of 20.6 GB/s
}

TEST(KnownSystems, AzureNdv2IsADoubledCube) {
  const System system = makeKnownSystem("azure-ndv2");
  EXPECT_EQ(numaNumberOf(system, "0004:00:00.0"), 0);
  EXPECT_EQ(numaNumberOf(system, "0005:00:00.0"), 1);
  EXPECT_EQ(numaNumberOf(system, "0101:00:00.0"), 0);
  EXPECT_EQ(system.devices[0].numa->affinity, "00000000,000fffff");
  EXPECT_EQ(system.devices[numaOf(system, deviceNamed(system, "GPU 4"))].numa->affinity, "000000ff,fff00000");
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 4"), "NVL");
  EXPECT_DOUBLE_EQ(bandwidth(system, "GPU 0", "GPU 4"), 40);
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 7"), "NVB");
  EXPECT_EQ(pathType(system, "GPU 0", "mlx5_0"), "PHB");
  EXPECT_EQ(pathType(system, "GPU 4", "mlx5_0"), "SYS");
  EXPECT_DOUBLE_EQ(bandwidth(system, "GPU 4", "mlx5_0"), 10);  // between Skylakes
}

// The numbers of GPUs and NICs run opposite ways.
TEST(KnownSystems, IbmHasOppositeOrders) {
  const System system = makeKnownSystem("ibm-hgx-h100");
  constexpr const char* kBuses[8][3] = {{"a1", "a3", "a4"}, {"ab", "ad", "ae"}, {"b5", "b7", "b8"}, {"bf", "c1", "c2"},
                                        {"c9", "cb", "cc"}, {"d3", "d5", "d6"}, {"dd", "df", "e0"}, {"e7", "e9", "ea"}};
  const auto at = [&](const char* bus) { return deviceNamed(system, fmt::format("0000:{}:00.0", bus)); };
  for (int i = 0; i < 8; ++i) {
    const int bridge = at(kBuses[i][0]), nic = at(kBuses[i][1]), gpu = at(kBuses[i][2]);
    EXPECT_EQ(gpu, deviceNamed(system, fmt::format("GPU {}", i)));
    EXPECT_EQ(nic, deviceNamed(system, fmt::format("mlx5_{}", 7 - i)));
    EXPECT_EQ(system.devices[nic].parent, bridge);
    EXPECT_EQ(system.devices[gpu].parent, bridge);
    EXPECT_EQ(numaNumberOf(system, nameOf(system, gpu)), i / 4);
    EXPECT_EQ(pathType(system, fmt::format("GPU {}", i), fmt::format("mlx5_{}", 7 - i)), "PIX");
  }
  EXPECT_EQ(pathType(system, "GPU 0", "mlx5_0"), "PXN");
  EXPECT_EQ(warningsOf(system).size(), 1u);
}

TEST(KnownSystems, AwsP4dHasTwoGpusANic) {
  const System system = makeKnownSystem("aws-p4d");
  for (int i = 0; i < 8; ++i) {
    const int gpu = deviceNamed(system, fmt::format("GPU {}", i));
    EXPECT_EQ(numaNumberOf(system, nameOf(system, gpu)), i / 4);
    int near = 0;
    for (const int nic : devicesOf(system, DeviceKind::kNic))
      near += Paths(system).between(gpu, nic).type == PathType::kSwitch;
    EXPECT_EQ(near, 1);
  }
  EXPECT_DOUBLE_EQ(bandwidth(system, "GPU 0", "rdmap16s27"), 12);  // 8 GT/s x16
  EXPECT_EQ(system.devices[deviceNamed(system, "rdmap16s27")].pci->classCode, "0x020000");
}

TEST(KnownSystems, AwsP5HasFourNicsAGpu) {
  const System system = makeKnownSystem("aws-p5");
  const Paths paths(system);
  for (const int gpu : devicesOf(system, DeviceKind::kGpu)) {
    int near = 0;
    for (const int nic : devicesOf(system, DeviceKind::kNic)) near += paths.between(gpu, nic).type == PathType::kSwitch;
    EXPECT_EQ(near, 4);
  }
}

TEST(KnownSystems, DgxA100HasPairs) {
  const System system = makeKnownSystem("dgx-a100");
  constexpr int kNodes[] = {3, 3, 1, 1, 7, 7, 5, 5};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(numaNumberOf(system, fmt::format("GPU {}", i)), kNodes[i]);
    for (int nic = 0; nic < 8; ++nic)
      EXPECT_EQ(pathType(system, fmt::format("GPU {}", i), fmt::format("mlx5_{}", nic)),
                i / 2 == nic / 2 ? "PIX" : "PXN");
  }
}

TEST(KnownSystems, PcieBoxHasEveryDistance) {
  const System system = makeKnownSystem("pcie-box");
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 1"), "PIX");
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 2"), "PXB");
  EXPECT_EQ(pathType(system, "GPU 0", "GPU 4"), "SYS");
  EXPECT_EQ(pathType(system, "GPU 2", "mlx5_0"), "PIX");
  EXPECT_EQ(pathType(system, "GPU 0", "mlx5_0"), "PXB");
}

TEST(KnownSystems, SurviveTheirXml) {
  for (const KnownSystem& one : knownSystems()) {
    System system = makeKnownSystem(one.name);
    System again = readNcclXml(writeNcclXml(system), "again");
    system.remarks.clear();  // those of the maker are not in the file
    again.remarks.clear();
    EXPECT_EQ(system, again) << one.name;
  }
}

TEST(KnownSystems, WarnOfNothingButWhatIsOdd) {
  for (const KnownSystem& one : knownSystems()) {
    if (one.name != "ibm-hgx-h100") {
      EXPECT_TRUE(warningsOf(makeKnownSystem(one.name)).empty()) << one.name;
    }
  }
}

TEST(KnownSystems, NameThemselvesToWhoAsksForAnother) {
  try {
    makeKnownSystem("azure-ndv9");
    FAIL() << "it is known";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    const std::string text = error.what();
    EXPECT_NE(text.find("azure-ndv9"), std::string::npos) << text;
    for (const KnownSystem& one : knownSystems()) EXPECT_NE(text.find(one.name), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tutti::topology

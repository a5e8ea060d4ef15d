// Rings through the GPUs of known systems.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "catalog/known_systems.h"
#include "rings/routes.h"
#include "rings/search.h"
#include "topology/warnings.h"

namespace tutti::rings {
namespace {

using topology::Paths;
using topology::System;

Rings ringsOf(const System& system, bool leaves) { return searchRings(system, Paths(system), leaves); }

struct Golden {
  const char* system;
  bool leaves;
  size_t count;
  double gigabytes;  // of each
  const char *among, *toNic, *first;
};
constexpr Golden kGolden[] = {
    {"dgx-a100", false, 1, 240, "NVL", "LOC", "GPU 0 - GPU 1 - GPU 2 - GPU 3 - GPU 4 - GPU 5 - GPU 6 - GPU 7"},
    {"dgx-a100", true, 8, 24, "NVL", "PIX",
     "mlx5_0 > GPU 0 - GPU 2 - GPU 3 - GPU 4 - GPU 5 - GPU 6 - GPU 7 - GPU 1 > mlx5_0"},
    {"hgx-h100", false, 1, 370.8, "NVL", "LOC", "GPU 0 - GPU 1 - GPU 2 - GPU 3 - GPU 4 - GPU 5 - GPU 6 - GPU 7"},
    {"hgx-h100", true, 8, 48, "NVL", "PIX",
     "mlx5_0 > GPU 0 - GPU 1 - GPU 2 - GPU 3 - GPU 4 - GPU 5 - GPU 6 - GPU 7 > mlx5_7"},
    {"azure-ndv2", false, 6, 20, "NVL", "LOC", "GPU 0 - GPU 1 - GPU 2 - GPU 3 - GPU 7 - GPU 5 - GPU 6 - GPU 4"},
    {"azure-ndv2", true, 1, 12, "NVL", "PHB",
     "mlx5_0 > GPU 0 - GPU 1 - GPU 2 - GPU 6 - GPU 4 - GPU 5 - GPU 7 - GPU 3 > mlx5_0"},
    {"azure-ndv4", false, 1, 240, "NVL", "LOC", "GPU 0 - GPU 1 - GPU 2 - GPU 3 - GPU 4 - GPU 5 - GPU 6 - GPU 7"},
    {"azure-ndv4", true, 8, 24, "NVL", "PIX",
     "mlx5_ib0 > GPU 0 - GPU 2 - GPU 3 - GPU 4 - GPU 5 - GPU 6 - GPU 7 - GPU 1 > mlx5_ib0"},
    {"azure-ndv5", true, 8, 48, "NVL", "PIX",
     "mlx5_ib0 > GPU 0 - GPU 1 - GPU 2 - GPU 3 - GPU 4 - GPU 5 - GPU 6 - GPU 7 > mlx5_ib7"},
    {"aws-p4d", true, 4, 12, "NVL", "PIX",
     "rdmap16s27 > GPU 0 - GPU 2 - GPU 3 - GPU 4 - GPU 5 - GPU 6 - GPU 7 - GPU 1 > rdmap16s27"},
    {"aws-p5", true, 32, 12, "NVL", "PIX",
     "rdmap79s0 > GPU 0 - GPU 1 - GPU 2 - GPU 3 - GPU 4 - GPU 5 - GPU 6 - GPU 7 > rdmap198s0"},
    {"ibm-hgx-h100", true, 8, 24, "NVL", "PIX",
     "mlx5_0 > GPU 7 - GPU 0 - GPU 1 - GPU 2 - GPU 3 - GPU 4 - GPU 5 - GPU 6 > mlx5_1"},
    {"pcie-box", false, 1, 22, "SYS", "LOC", "GPU 0 - GPU 1 - GPU 2 - GPU 3 - GPU 4 - GPU 5 - GPU 6 - GPU 7"},
    {"pcie-box", true, 2, 11, "SYS", "PIX",
     "mlx5_0 > GPU 2 - GPU 0 - GPU 1 - GPU 4 - GPU 5 - GPU 6 - GPU 7 - GPU 3 > mlx5_0"}};

TEST(RingSearch, FindsThoseOfKnownSystems) {
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(std::string(golden.system) + (golden.leaves ? " of several" : " alone"));
    const System system = topology::makeKnownSystem(golden.system);
    const Rings rings = ringsOf(system, golden.leaves);
    ASSERT_EQ(rings.rings.size(), golden.count);
    EXPECT_NEAR(rings.gigabytes, golden.gigabytes, 1e-9);
    EXPECT_EQ(nameOf(rings.among), golden.among);
    EXPECT_EQ(nameOf(rings.toNic), golden.toNic);
    EXPECT_EQ(textOf(system, rings.rings.front()), golden.first);
  }
}

// The one check that does not trust the search: what all rings together take of each direction of each link.
void expectCarried(const System& system, const Rings& rings, bool leaves) {
  const Paths paths(system);
  Routes routes(system, paths);
  std::map<uint32_t, double> load;
  const auto add = [&](int from, int to) {
    const Route route = routes.between(from, to);
    ASSERT_FALSE(route.empty());
    for (const uint32_t one : route) load[one] += rings.gigabytes;
  };
  for (const Ring& ring : rings.rings) {
    const std::set<int> gpus(ring.gpus.begin(), ring.gpus.end());
    EXPECT_EQ(gpus.size(), ring.gpus.size());
    EXPECT_EQ(ring.gpus.size(), devicesOf(system, topology::DeviceKind::kGpu).size());
    for (size_t i = 0; i + 1 < ring.gpus.size(); ++i) add(ring.gpus[i], ring.gpus[i + 1]);
    if (!leaves) add(ring.gpus.back(), ring.gpus.front());
    if (leaves) add(ring.entry, ring.gpus.front()), add(ring.gpus.back(), ring.exit);
  }
  for (const auto& [one, sum] : load) EXPECT_LE(sum, routes.capacities()[one] + 1e-3);
}

TEST(RingSearch, TakesNoMoreThanLinksCarry) {
  for (const auto& known : topology::knownSystems())
    for (const bool leaves : {false, true}) {
      SCOPED_TRACE(std::string(known.name) + (leaves ? " of several" : " alone"));
      const System system = topology::makeKnownSystem(known.name);
      const Rings rings = ringsOf(system, leaves);
      EXPECT_EQ(rings.rings.empty(), devicesOf(system, topology::DeviceKind::kGpu).empty());
      expectCarried(system, rings, leaves);
    }
}

System without(const char* name, int gpusWithout, bool hidden) {
  System system;
  for (const auto& known : topology::knownSystems())
    if (known.name == name) system = known.make();
  for (topology::Device& device : system.devices) {
    if (!device.gpu) continue;
    if (device.gpu->number < gpusWithout) device.gpu->nvlinks.clear();
    if (!hidden) continue;
    int count = 0;
    for (const topology::NvLinks& one : device.gpu->nvlinks) count += one.count;
    device.gpu->nvlinks = {{"fffffff:ff:ff.0", count, "0x068000", {}}};
  }
  connect(system);
  return system;
}

// A public report has it: NCCL went on over one slow ring, and said nothing.
TEST(RingSearch, AGpuWithoutItsNvlinksIsSaid) {
  const System system = without("hgx-h100", 1, false);
  const Rings rings = ringsOf(system, false);
  EXPECT_EQ(nameOf(rings.among), "PHB");  // to it, and from it
  EXPECT_LT(rings.total(), 50);
  ASSERT_FALSE(warningsOf(system).empty());
  EXPECT_NE(warningsOf(system).front().find("GPU 0"), std::string::npos) << warningsOf(system).front();
  expectCarried(system, rings, false);
}

TEST(RingSearch, AHiddenFabricIsAFabric) {
  const Rings rings = ringsOf(without("hgx-h100", 0, true), true);
  EXPECT_EQ(rings.rings.size(), 8u);
  EXPECT_NEAR(rings.total(), 384, 1e-9);
}

TEST(RingSearch, WhereThereIsNothingToGoRound) {
  EXPECT_TRUE(ringsOf(System{}, false).rings.empty());
  EXPECT_TRUE(ringsOf(System{}, true).rings.empty());
  EXPECT_TRUE(ringsOf(topology::makeKnownSystem("azure-hbv3"), true).rings.empty());
}

// 64 GPUs at one fabric and as many NICs: found at once, not after all permutations.
TEST(RingSearch, ARackIsFoundToo) {
  System rack;
  rack.devices.push_back(
      {topology::DeviceKind::kNuma, -1, topology::Numa{0, "", "", "", 0, 0, "", {}}, {}, {}, {}, {}});
  for (int i = 0; i < 64; ++i) {
    topology::Device gpu{topology::DeviceKind::kGpu, 0, {}, topology::Pci{}, topology::Gpu{}, {}, {}};
    char busId[16];
    std::snprintf(busId, sizeof busId, "%04x:00:00.0", i + 1);
    gpu.pci->busId = busId, gpu.pci->speed = "32.0 GT/s PCIe", gpu.pci->width = 16;
    gpu.gpu->number = i, gpu.gpu->sm = 100;
    gpu.gpu->nvlinks = {{"fffffff:ff:ff.0", 18, "0x068000", {}}};
    rack.devices.push_back(gpu);
  }
  connect(rack);
  const Rings rings = ringsOf(rack, false);
  EXPECT_EQ(rings.rings.size(), 1u);
  EXPECT_EQ(nameOf(rings.among), "NVL");
}

}  // namespace
}  // namespace tutti::rings

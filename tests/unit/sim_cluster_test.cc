// What a cluster takes from the systems that are known by name.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/costs.h"
#include "base/error.h"
#include "sim/network.h"
#include "tests/unit/sim_clusters.h"

namespace tutti::sim {
namespace {

using Numbers = std::vector<int>;

TEST(SimCluster, ANicForEachGpu) {
  const Cluster cluster = knownCluster("hgx-h100", 4);
  EXPECT_EQ(cluster.ranks(), 32);
  EXPECT_DOUBLE_EQ(cluster.portGBs, 18 * 20.6);
  EXPECT_EQ(cluster.nicOf, (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_DOUBLE_EQ(cluster.nics[3].gbs, 48);
  EXPECT_EQ(cluster.nics[3].name, "mlx5_3");
}

// The maker counts NICs in the opposite order.
TEST(SimCluster, EachGpuHasTheNearestNic) {
  const Cluster cluster = knownCluster("ibm-hgx-h100", 1);
  for (size_t rank = 0; rank < 8; ++rank)
    EXPECT_EQ(cluster.nics[static_cast<size_t>(cluster.nicOf[rank])].name, "mlx5_" + std::to_string(7 - rank));
}

TEST(SimCluster, GpusShareNics) {
  EXPECT_EQ(knownCluster("aws-p4d", 2).nicOf, (Numbers{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(knownCluster("azure-ndv2", 2).nicOf, Numbers(8, 0));
  EXPECT_EQ(knownCluster("pcie-box", 2).nicOf, (Numbers{0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST(SimCluster, GpusHaveSeveralNics) {
  const Cluster cluster = knownCluster("aws-p5", 2);
  ASSERT_EQ(cluster.nics.size(), 8u);
  EXPECT_DOUBLE_EQ(cluster.nics[0].gbs, 48);
  EXPECT_EQ(cluster.nics[0].name, "rdmap79s0 and 3 more");
}

TEST(SimCluster, ThePortIsTheLeastPathBetweenGpus) {
  EXPECT_DOUBLE_EQ(knownCluster("dgx-a100", 1).portGBs, 240);
  EXPECT_DOUBLE_EQ(knownCluster("azure-ndv2", 1).portGBs, 10);  // by PCI: no GPU hands on to another
  EXPECT_DOUBLE_EQ(knownCluster("azure-ndv2", 1).ringGBs, 40);
  EXPECT_LT(knownCluster("azure-ndv2", 1).ringUs, knownCluster("azure-ndv2", 1).localUs);
  EXPECT_LT(knownCluster("pcie-box", 1).portGBs, 24.1);
  EXPECT_GT(knownCluster("pcie-box", 1).localUs, knownCluster("dgx-a100", 1).localUs);
}

TEST(SimCluster, RanksOnCoresShareTheirNic) {
  const Cluster cluster = knownCluster("azure-hbv3", 2);
  EXPECT_EQ(cluster.ranksPerHost, 4);
  EXPECT_DOUBLE_EQ(cluster.nics[0].gbs, 24);
  EXPECT_DOUBLE_EQ(cluster.portGBs, costs::kShm.bandwidthGBs);
  EXPECT_EQ(knownCluster("azure-hbv3", 2, 120).ranksPerHost, 120);
}

TEST(SimCluster, FewerRanksThanGpus) {
  const Cluster cluster = knownCluster("aws-p4d", 2, 3);
  EXPECT_EQ(cluster.ranks(), 6);
  EXPECT_EQ(Network(cluster).nameOf(Network(cluster).path(2, 3).out), "rdmap32s27 of host 0, out");
}

topology::System coresAt(std::vector<const char*> masks) {
  topology::System system;
  for (const char* mask : masks) {
    topology::Device& node = system.devices.emplace_back();
    node.kind = topology::DeviceKind::kNuma;
    node.numa.emplace();
    node.numa->affinity = mask;
  }
  topology::connect(system);
  return system;
}

TEST(SimCluster, MemoryWithoutCoresIsNoRank) {
  EXPECT_EQ(clusterOf(coresAt({"0000000f", "000000f0", "00000000,00000000"}), "cores", 1).ranksPerHost, 2);
  EXPECT_EQ(clusterOf(coresAt({"", ""}), "unknown cores", 1).ranksPerHost, 2);
  EXPECT_THROW(clusterOf(coresAt({"0", ""}), "no NIC", 2), Error);
  EXPECT_THROW(clusterOf(coresAt({"0", "0"}), "memory alone", 1), Error);
}

TEST(SimCluster, APortOfUnknownSpeedHasWhatWasAssumed) {
  topology::System system = coresAt({"f"});
  system.links.clear();
  topology::Device& nic = system.devices.emplace_back();
  nic.kind = topology::DeviceKind::kNic;
  nic.parent = 0;
  topology::Device& port = system.devices.emplace_back();
  port.kind = topology::DeviceKind::kPort;
  port.parent = 1;
  port.port.emplace();
  topology::connect(system);
  EXPECT_DOUBLE_EQ(clusterOf(system, "unknown", 2).nics[0].gbs, 1.2);
}

TEST(SimCluster, ALinkThatCarriesNothingIsNamed) {
  Cluster broken = knownCluster("hgx-h100", 2);
  broken.nics[3].gbs = 0;
  try {
    check(broken);
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()).find("carries nothing, mlx5_3"), std::string_view::npos) << error.what();
  }
}

TEST(SimCluster, OneHostIsANode) {
  topology::System two = coresAt({"f", "f"});
  two.devices[1].numa->host = "b";
  EXPECT_THROW(clusterOf(two, "two hosts", 1), Error);
}

TEST(SimCluster, RefusesWhatMakesNoSense) {
  EXPECT_THROW(knownCluster("hgx-h100", 0), Error);
  EXPECT_THROW(knownCluster("hgx-h100", 1, 9), Error);
  EXPECT_THROW(clusterOf(topology::System{}, "nothing", 2), Error);
  Cluster broken = knownCluster("hgx-h100", 2);
  broken.nicOf[1] = 8;
  EXPECT_THROW(Network{broken}, Error);
  for (const double us : {-1.0, 1e30, std::numeric_limits<double>::infinity(), std::nan("")})
    for (double Cluster::*latency : {&Cluster::localUs, &Cluster::remoteUs}) {
      Cluster late = knownCluster("hgx-h100", 2);
      late.*latency = us;
      EXPECT_THROW(Network{late}, Error) << us;
    }
}

}  // namespace
}  // namespace tutti::sim

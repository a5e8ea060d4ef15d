// What a host's report tells other ranks: as bytes, and read from made-up trees of /sys and /proc.
#include "base/port_list.h"
#include "preflight/host_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "preflight/collect.h"
#include "unit/machine_tree.h"

namespace tutti::preflight {
namespace {

HostReport fullReport() {
  HostReport report;
  report.host = "n2";
  report.version = "0.2.0";
  report.kernel = "6.1.0";
  report.hostId = 77;
  report.firstRank = 8;
  report.ranks = 4;
  report.clockMs = 1'700'000'000'000;
  report.asRoot = true;
  report.iommu = IommuMode::kTranslates;
  report.acsRedirects = 3;
  report.nvidiaGpus = 8;
  report.limits = {1 << 20, 1024, 4096, Limits::kUnlimited, 64 << 20, 3.5};
  report.gidIndex = 3;
  report.lacksVerbs = "it is not built in";
  report.interfaces = {{"eth0", "up", true, true, false, 0, 9000, 100'000, {{"10.0.0.1", 24}, {"fd00::1", 64}}},
                       {"lo", "unknown", true, false, true, 1, 65536, 0, {{"127.0.0.1", 8}}}};
  report.rdma = {{"mlx5_0", 1, "ACTIVE", "LinkUp", "Ethernet", "eth0", false, 100'000, {{3, "fe80::1", "RoCE v2"}}}};
  return report;
}

TEST(HostReport, CrossesAsBytes) { EXPECT_EQ(decodeHostReport(encode(fullReport())), fullReport()); }

TEST(HostReport, RefusesBytesThatAreNone) {
  const Bytes bytes = encode(fullReport());
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(decodeHostReport(std::span(bytes).first(length)), Error) << length;
  Bytes other = bytes;
  other.push_back(std::byte{0});
  EXPECT_THROW(decodeHostReport(other), Error);
  other = bytes;
  other[4] = std::byte{99};  // a format to come
  EXPECT_THROW(decodeHostReport(other), Error);
}

// What is added up or compared must not overflow.
TEST(HostReport, RefusesNumbersThatNoHostHas) {
  const auto refused = [](auto spoil) {
    HostReport report = fullReport();
    spoil(report);
    EXPECT_THROW(decodeHostReport(encode(report)), Error);
  };
  refused([](HostReport& one) { one.clockMs = std::numeric_limits<int64_t>::min(); });
  refused([](HostReport& one) { one.clockMs = std::numeric_limits<int64_t>::max(); });
  refused([](HostReport& one) { one.ranks = std::numeric_limits<int>::max(); });
  refused([](HostReport& one) { one.firstRank = std::numeric_limits<int>::max(); });
  refused([](HostReport& one) { one.ranks = 0; });
}

TEST(HostReport, RefusesWhatWouldSpoilATerminal) {
  Bytes bytes = encode(fullReport());
  const auto name = std::ranges::search(bytes, std::as_bytes(std::span("eth0", 4)));
  ASSERT_FALSE(name.empty());
  name.front() = std::byte{0x1b};
  EXPECT_THROW(decodeHostReport(bytes), Error);
}

TEST(HostReport, HasAnEnd) {
  HostReport report = fullReport();
  report.interfaces.resize(1000, report.interfaces[0]);
  report.rdma[0].gids.resize(300, report.rdma[0].gids[0]);
  report.lacksVerbs = std::string(100'000, 'x');
  const HostReport copy = decodeHostReport(encode(report));
  EXPECT_EQ(copy.interfaces.size(), 64u);
  EXPECT_EQ(copy.rdma[0].gids.size(), 32u);
  EXPECT_LT(copy.lacksVerbs.size(), 500u);
}

TEST(HostReport, TellsHostsOfOneNameApart) {
  std::vector<HostReport> reports(3, fullReport());
  reports[0].firstRank = 0;
  reports[1].firstRank = 2;
  reports[2].host = "n3";
  tellApart(reports);
  EXPECT_EQ(reports[0].host, "n2#0");
  EXPECT_EQ(reports[1].host, "n2#2");
  EXPECT_EQ(reports[2].host, "n3");
}

class Collected : public detect::MachineTree {
 protected:
  Sources sources() const {
    Sources all;
    all.root = root_;
    return all;
  }
  void interface(Sources& all, const std::string& name, int index, const std::map<std::string, std::string>& texts) {
    all.interfaces.push_back({name, index, 1500, true, false, {{"10.0.0.1", 24}}});
    files("/sys/class/net/" + name, texts);
  }
  void port(const std::string& device, const std::map<std::string, std::string>& texts) {
    files("/sys/class/infiniband/" + device + "/ports/1", texts);
  }
  // An extended capability's head: what it is, and where the next one is.
  static void capability(std::string& registers, size_t at, uint32_t id, uint32_t next) {
    const uint32_t head = id | 1u << 16 | next << 20;
    for (size_t i = 0; i < 4; ++i) registers[at + i] = static_cast<char>(head >> (8 * i));
  }
  void bridge(const std::string& name, const std::string& registers) {
    files("/sys/bus/pci/devices/" + name, {{"class", "0x060400"}, {"vendor", "0x8086"}});
    std::ofstream(root_ + "/sys/bus/pci/devices/" + name + "/config", std::ios::binary) << registers;
  }
};

TEST_F(Collected, NothingIsKnownWhereNothingTells) {
  const HostReport report = collect(sources());
  EXPECT_TRUE(report.interfaces.empty());
  EXPECT_TRUE(report.rdma.empty());
  EXPECT_EQ(report.iommu, IommuMode::kUnknown);
  EXPECT_EQ(report.nvidiaGpus, 0);
  EXPECT_EQ(report.limits.cores, 0);
  EXPECT_EQ(report.limits.memoryBytes, Limits::kUnlimited);
  EXPECT_FALSE(report.host.empty());
  EXPECT_GT(report.clockMs, 0);
}

TEST_F(Collected, AnInterfaceIsWhatTheProcessSeesAndWhatTheKernelSaysOfTheSameOne) {
  Sources all = sources();
  interface(all, "eth0", 4, {{"ifindex", "4"}, {"operstate", "up"}, {"speed", "25000"}, {"device/vendor", "0x15b3"}});
  interface(all, "eth1", 5, {{"ifindex", "2"}, {"operstate", "down"}, {"speed", "10"}});
  all.used = {"eth1", "eth0"};
  const HostReport report = collect(all);
  ASSERT_EQ(report.interfaces.size(), 2u);
  const InterfaceReport& same = report.interfaces[0];
  EXPECT_EQ(same.megabits, 25000);
  EXPECT_EQ(same.mtu, 1500);
  EXPECT_EQ(same.use, 1);
  EXPECT_TRUE(same.isDevice);
  EXPECT_EQ(same.addresses, (std::vector<NetAddress>{{"10.0.0.1", 24}}));
  const InterfaceReport& anothers = report.interfaces[1];  // its file is of another network namespace
  EXPECT_EQ(anothers.megabits, 0);
  EXPECT_EQ(anothers.state, "up");
  EXPECT_EQ(anothers.use, 0);
}

TEST_F(Collected, RdmaPorts) {
  port("mlx5_0", {{"state", "1: DOWN"},
                  {"phys_state", "3: Disabled"},
                  {"link_layer", "Ethernet"},
                  {"rate", "100 Gb/sec (4X EDR)"},
                  {"gids/0", "0000:0000:0000:0000:0000:0000:0000:0000"},
                  {"gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001"},
                  {"gid_attrs/types/3", "RoCE v2"},
                  {"gid_attrs/ndevs/3", "eth0"}});
  port("mlx5_1", {{"state", "4: ACTIVE"}, {"link_layer", "InfiniBand"}});
  Sources all = sources();
  all.rdmaPorts = "=mlx5_1";
  const HostReport report = collect(all);
  ASSERT_EQ(report.rdma.size(), 2u);
  const RdmaPortReport expected{"mlx5_0",   1,          "DOWN",
                                "Disabled", "Ethernet", "eth0",
                                false,      100'000,    {{3, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2"}}};
  EXPECT_EQ(report.rdma[0], expected);
  EXPECT_TRUE(report.rdma[1].isMeant);
  EXPECT_TRUE(report.rdma[1].isActive());
}

TEST_F(Collected, LimitsOfControlGroups) {
  write("/proc/self/cgroup", "0::/box");
  write("/sys/fs/cgroup/box/cpu.max", "150000 100000");
  write("/sys/fs/cgroup/box/memory.max", "1073741824");
  const HostReport report = collect(sources());
  EXPECT_EQ(report.limits.cores, 1.5);
  EXPECT_EQ(report.limits.memoryBytes, uint64_t{1} << 30);
}

TEST_F(Collected, TheIommuIsOffWhereThereAreNoGroups) {
  folder("/sys/kernel/iommu_groups");
  EXPECT_EQ(collect(sources()).iommu, IommuMode::kOff);
}

TEST_F(Collected, TheIommuTranslatesWhereItDoesForOneOfTheDevices) {
  folder("/sys/kernel/iommu_groups/1");
  write("/sys/class/infiniband/mlx5_0/device/iommu_group/type", "identity");
  EXPECT_EQ(collect(sources()).iommu, IommuMode::kPassthrough);
  files("/sys/bus/pci/devices/0000:17:00.0",
        {{"vendor", "0x10de"}, {"class", "0x030200"}, {"iommu_group/type", "DMA-FQ"}});
  const HostReport report = collect(sources());
  EXPECT_EQ(report.iommu, IommuMode::kTranslates);
  EXPECT_EQ(report.nvidiaGpus, 1);
}

TEST_F(Collected, TheCommandLineTellsWhereNoGroupDoes) {
  folder("/sys/kernel/iommu_groups/1");
  write("/proc/cmdline", "quiet intel_iommu=on");
  EXPECT_EQ(collect(sources()).iommu, IommuMode::kTranslates);
  write("/proc/cmdline", "quiet intel_iommu=on iommu=pt");
  EXPECT_EQ(collect(sources()).iommu, IommuMode::kPassthrough);
}

TEST_F(Collected, BridgesThatRedirect) {
  std::string registers(4096, '\0');
  capability(registers, 0x100, 0x0001, 0x148);
  capability(registers, 0x148, 0x000d, 0);
  bridge("0000:00:01.0", registers);
  EXPECT_EQ(collect(sources()).acsRedirects, 0);
  registers[0x148 + 6] = 0x1d;  // source validation, and requests and completions to peers
  bridge("0000:00:02.0", registers);
  EXPECT_EQ(collect(sources()).acsRedirects, 1);
}

TEST_F(Collected, RegistersThatOnlyRootReads) {
  bridge("0000:00:01.0", std::string(64, '\0'));
  EXPECT_EQ(collect(sources()).acsRedirects, -1);
}

TEST_F(Collected, AListOfRegistersThatBitesItsTailEnds) {
  std::string registers(4096, '\0');
  capability(registers, 0x100, 0x0001, 0x100);
  bridge("0000:00:01.0", registers);
  EXPECT_EQ(collect(sources()).acsRedirects, 0);
}

TEST(MeansPort, AsNcclReadsIt) {
  EXPECT_TRUE(meansPort("", "mlx5_0", 1));
  EXPECT_TRUE(meansPort("mlx5", "mlx5_0", 1));
  EXPECT_FALSE(meansPort("=mlx5", "mlx5_0", 1));
  EXPECT_TRUE(meansPort("=mlx4_0,mlx5_0:1", "mlx5_0", 1));
  EXPECT_FALSE(meansPort("mlx5_0:2", "mlx5_0", 1));
  EXPECT_FALSE(meansPort("^mlx5_0", "mlx5_0", 1));
  EXPECT_TRUE(meansPort("^=mlx5", "mlx5_0", 1));
  EXPECT_FALSE(meansPort(",", "mlx5_0", 1));
  EXPECT_FALSE(meansPort("mlx5_0:1x", "mlx5_0", 1));
  EXPECT_FALSE(meansPort("mlx5_0:", "mlx5_0", 1));
  EXPECT_TRUE(meansPort("^", "mlx5_0", 1));
}

// What this machine says can be told to others and comes out as it was.
TEST(HostReport, OfThisMachine) {
  HostReport report = collect(sourcesHere({}, {{"TUTTI_IB_HCA", "mlx5_0"}, {"TUTTI_IB_GID_INDEX", "3"}}));
  EXPECT_EQ(report.gidIndex, 3);
  EXPECT_FALSE(report.interfaces.empty());
  EXPECT_GT(report.limits.openFiles, 0u);
  EXPECT_EQ(decodeHostReport(encode(report)), report);
}

}  // namespace
}  // namespace tutti::preflight

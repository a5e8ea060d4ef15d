// What is found in made-up reports and measurements; and that nothing is found where all is well.
#include "preflight/findings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace tutti::preflight {
namespace {

InterfaceReport ethernet(const std::string& name, const std::string& ip, int64_t megabits = 25'000) {
  return {name, "up", true, true, false, 0, 1500, megabits, {{ip, 24}}};
}

std::string mapped(int number) { return fmt::format("0000:0000:0000:0000:0000:ffff:0a00:{:04x}", number); }

RdmaPortReport roce(const std::string& device, int number) {
  RdmaPortReport port{device, 1, "ACTIVE", "LinkUp", "Ethernet", "eth0", true, 100'000, {}};
  port.gids = {{0, fmt::format("fe80:0000:0000:0000:0000:0000:0000:{:04x}", number), "IB/RoCE v1"},
               {1, fmt::format("fe80:0000:0000:0000:0000:0000:0000:{:04x}", number), "RoCE v2"},
               {3, mapped(number), "RoCE v2"}};
  return port;
}

RdmaPortReport infiniband(const std::string& device, int number, const std::string& subnet = "fe80:0000:0000:0000") {
  RdmaPortReport port{device, 1, "ACTIVE", "LinkUp", "InfiniBand", "", true, 200'000, {}};
  port.gids = {{0, fmt::format("{}:0000:0000:0000:{:04x}", subnet, number), ""}};
  return port;
}

std::vector<HostReport> hosts(int count) {
  std::vector<HostReport> all;
  for (int i = 0; i < count; ++i) {
    HostReport& one = all.emplace_back();
    one.host = fmt::format("n{}", i + 1);
    one.version = "0.2.0";
    one.hostId = static_cast<uint64_t>(i);
    one.firstRank = one.ranks * i;
    one.clockMs = 1'700'000'000'000 + i;
    one.limits = {Limits::kUnlimited, 4096, 4096, Limits::kUnlimited, 64 << 20, 0};
    one.interfaces = {ethernet("eth0", fmt::format("10.0.0.{}", i + 1)),
                      {"lo", "unknown", true, false, true, 1, 65536, 0, {{"127.0.0.1", 8}}}};
  }
  return all;
}

std::vector<HostReport> rdmaHosts(int count, const std::function<RdmaPortReport(const std::string&, int)>& port) {
  auto all = hosts(count);
  for (int i = 0; i < count; ++i) all[static_cast<size_t>(i)].rdma = {port("mlx5_0", i + 1), port("mlx5_1", i + 101)};
  return all;
}

std::vector<HostReport> roceHosts(int count) { return rdmaHosts(count, roce); }
std::vector<HostReport> infinibandHosts(int count) {
  return rdmaHosts(count, [](const std::string& device, int number) { return infiniband(device, number); });
}

std::vector<PairResult> pairsOf(size_t count, const std::string& transport = "tcp", double speed = 2) {
  std::vector<PairResult> all;
  for (size_t a = 0; a < count; ++a)
    for (size_t b = a + 1; b < count; ++b)
      all.push_back({static_cast<int>(a), static_cast<int>(b), a, b, transport, 20, speed, speed, ""});
  return all;
}

PairResult& between(std::vector<PairResult>& pairs, size_t a, size_t b) {
  return *std::ranges::find_if(pairs, [&](const PairResult& one) { return one.lowHost == a && one.highHost == b; });
}

std::string said(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& one : findings) text += fmt::format("{}: {}\n", nameOf(one.severity), textOf(one));
  return text;
}

void expectNothing(const std::vector<HostReport>& reports, const std::vector<PairResult>& pairs = {}) {
  EXPECT_EQ(said(findingsOf(reports, pairs)), "");
}

// One finding, which begins and goes on so, and says what to do.
void expectOne(const std::vector<Finding>& findings, Severity severity, const std::string& who,
               const std::vector<std::string>& words) {
  ASSERT_EQ(findings.size(), 1u) << said(findings);
  const Finding& one = findings.front();
  EXPECT_EQ(one.severity, severity) << said(findings);
  EXPECT_EQ(one.who, who);
  for (const std::string& word : words)
    EXPECT_NE(textOf(one).find(word), std::string::npos) << word << "\n" << textOf(one);
  EXPECT_FALSE(one.fix.empty());
  EXPECT_EQ(needsMending(findings), severity != Severity::kHint);
}

void expectOne(const std::vector<HostReport>& reports, Severity severity, const std::string& who,
               const std::vector<std::string>& words) {
  expectOne(findingsOf(reports), severity, who, words);
}

TEST(Findings, NoneWhereAllIsWell) {
  expectNothing({});
  expectNothing(hosts(1));
  expectNothing(hosts(4), pairsOf(4));
  expectNothing(roceHosts(4), pairsOf(4, "verbs"));
  expectNothing(infinibandHosts(4));
  EXPECT_FALSE(needsMending({}));
}

TEST(Findings, NoneOfAHostAloneWithoutANetwork) {
  auto all = hosts(1);
  all[0].interfaces.clear();
  expectNothing(all);
}

TEST(Findings, TheWorstComesFirst) {
  auto all = hosts(3);
  all[0].clockMs += 60'000;
  all[1].interfaces[0].mtu = 1280;
  all[2].interfaces.erase(all[2].interfaces.begin());
  const auto findings = findingsOf(all);
  ASSERT_EQ(findings.size(), 3u) << said(findings);
  EXPECT_EQ(findings[0].severity, Severity::kError);
  EXPECT_EQ(findings[1].severity, Severity::kWarning);
  EXPECT_EQ(findings[2].severity, Severity::kHint);
}

TEST(InterfaceFindings, AnotherMtuInOneNetwork) {
  auto all = hosts(4);
  all[2].interfaces[0].mtu = 9000;
  expectOne(all, Severity::kWarning, "n3",
            {"eth0 has an MTU of 9000", "10.0.0.0/24 have 1500", "ip link set eth0 mtu 1500"});
}

TEST(InterfaceFindings, AnotherMtuInBothNetworksOfAnInterfaceIsToldOnce) {
  auto all = hosts(3);
  for (size_t i = 0; i < all.size(); ++i)
    all[i].interfaces[0].addresses.push_back({fmt::format("fd00::{}", i + 1), 64});
  expectNothing(all);
  all[0].interfaces[0].mtu = 9000;
  expectOne(all, Severity::kWarning, "n1", {"MTU of 9000"});
}

TEST(InterfaceFindings, MtusOfDifferentNetworksMayDiffer) {
  auto all = hosts(2);
  all[1].interfaces[0].addresses = {{"10.0.1.2", 24}};
  all[1].interfaces[0].mtu = 9000;
  expectNothing(all);
  for (HostReport& one : all) one.interfaces[0].addresses = {{"fe80::1", 64}};  // which everyone has
  expectNothing(all);
}

TEST(InterfaceFindings, MtusOfInterfacesThatAreNotUsedMayDiffer) {
  auto all = hosts(2);
  all[1].interfaces.push_back(ethernet("docker0", "10.0.0.99"));
  all[1].interfaces.back().use = -1;
  all[1].interfaces.back().mtu = 9000;
  expectNothing(all);
}

TEST(InterfaceFindings, NoneToCall) {
  auto all = hosts(2);
  all[1].interfaces.erase(all[1].interfaces.begin());
  expectOne(all, Severity::kError, "n2", {"no interface", "TUTTI_SOCKET_IFNAME"});
}

TEST(InterfaceFindings, FamiliesThatDoNotMeet) {
  auto all = hosts(3);
  all[1].interfaces[0].addresses = {{"fd00::2", 64}};
  expectOne(all, Severity::kError, "n2", {"only IPv6 addresses, and n1, n3 only IPv4", "TUTTI_SOCKET_FAMILY"});
  all[1].interfaces[0].addresses.push_back({"10.0.0.2", 24});
  expectNothing(all);
}

TEST(InterfaceFindings, ASlowOneIsFirstThoughAFasterOneIsUp) {
  auto all = hosts(2);
  for (HostReport& one : all) {
    one.interfaces[0].megabits = 1000;
    one.interfaces.push_back(ethernet("ib0", "10.1.0." + one.host.substr(1), 200'000));
    one.interfaces.back().use = 1;
  }
  const auto findings = findingsOf(all);
  ASSERT_EQ(findings.size(), 2u) << said(findings);
  EXPECT_EQ(
      textOf(findings[0]),
      "n1: eth0 (1 Gbit/s) is used first, though ib0 (200 Gbit/s) is up. TUTTI_SOCKET_IFNAME=ib0 on all hosts, if "
      "it leads to all of them");
  for (HostReport& one : all) one.rdma = {roce("mlx5_0", one.host[1])};  // which carries the data
  expectNothing(all);
}

TEST(InterfaceFindings, AFasterOneThatIsDownOrHasNoAddressIsNoChoice) {
  auto all = hosts(1);
  all[0].interfaces.push_back(ethernet("ib0", "10.1.0.1", 200'000));
  all[0].interfaces.back().isUp = false;
  expectNothing(all);
  all[0].interfaces.back().isUp = true;
  all[0].interfaces.back().addresses.clear();
  expectNothing(all);
}

TEST(InterfaceFindings, DownHereAndUsedElsewhere) {
  auto all = hosts(3);
  for (HostReport& one : all) {
    one.interfaces.push_back(ethernet("eth1", "10.1.0." + one.host.substr(1)));
    one.interfaces.back().use = 2;
  }
  all[1].interfaces.back().isUp = false;
  all[1].interfaces.back().state = "down";
  all[1].interfaces.back().use = -1;
  expectOne(all, Severity::kWarning, "n2", {"eth1 is down (down), and used on n1, n3", "ip link set eth1 up"});
}

// Each with all others, for each interface, would take minutes, in which rank 0 keeps all others waiting.
TEST(InterfaceFindings, OfThousandsOfHosts) {
  constexpr int kHosts = 3000, kInterfaces = 60;
  auto all = hosts(kHosts);
  for (size_t host = 0; host < all.size(); ++host)
    for (int i = 0; i < kInterfaces; ++i) {
      const bool isDown = host % 2 == 0;
      all[host].interfaces.push_back({fmt::format("interface-of-a-container-{}", i),
                                      isDown ? "down" : "up",
                                      !isDown,
                                      true,
                                      false,
                                      isDown ? -1 : i + 2,
                                      1500,
                                      1000,
                                      {}});
    }
  const auto findings = findingsOf(all);
  EXPECT_EQ(std::ranges::count_if(
                findings, [](const Finding& one) { return one.what.find("is down (down)") != std::string::npos; }),
            kHosts / 2 * kInterfaces);
}

TEST(InterfaceFindings, DownEverywhereIsNobodysBusiness) {
  auto all = hosts(2);
  for (HostReport& one : all) {
    one.interfaces.push_back(ethernet("eth1", "10.1.0.1"));
    one.interfaces.back().isUp = false;
    one.interfaces.back().use = -1;
  }
  expectNothing(all);
}

TEST(InterfaceFindings, SlowerThanThoseOfMostHosts) {
  auto all = hosts(4);
  all[3].interfaces[0].megabits = 1000;
  expectOne(all, Severity::kWarning, "n4", {"eth0 runs at 1 Gbit/s, those of most hosts at 25 Gbit/s", "ethtool"});
}

TEST(RdmaFindings, TheOnlyPortIsDown) {
  auto all = roceHosts(1);
  all[0].rdma.resize(1);
  all[0].rdma[0].state = "DOWN";
  all[0].rdma[0].physical = "Disabled";
  expectOne(all, Severity::kError, "n1",
            {"RDMA port mlx5_0:1 is DOWN, Disabled: there is no RDMA on this host", "ip link set eth0 up"});
}

TEST(RdmaFindings, OneOfTwoPortsIsDown) {
  auto all = roceHosts(3);
  all[1].rdma[1].state = "DOWN";
  all[1].rdma[1].physical = "Polling";
  expectOne(all, Severity::kWarning, "n2", {"mlx5_1:1 is DOWN, Polling: its part goes over the others", "cable"});
}

TEST(RdmaFindings, APortThatIsNotMeantMayBeDown) {
  auto all = roceHosts(3);
  all[1].rdma[1].state = "DOWN";
  all[1].rdma[1].isMeant = false;
  expectNothing(all);
}

TEST(RdmaFindings, InfinibandWithoutASubnetManager) {
  auto all = infinibandHosts(1);
  for (RdmaPortReport& port : all[0].rdma) port.state = "INIT";
  const auto findings = findingsOf(all);
  ASSERT_EQ(findings.size(), 2u) << said(findings);
  EXPECT_NE(findings[0].fix.find("subnet manager"), std::string::npos);
}

TEST(RdmaFindings, NoAddressOfVersion2) {
  auto all = roceHosts(1);
  all[0].rdma[0].gids.resize(1);
  expectOne(all, Severity::kWarning, "n1", {"mlx5_0:1 has no address of RoCE version 2", "Give eth0 an IP address"});
}

TEST(RdmaFindings, NoAddressAtAll) {
  auto all = roceHosts(1);
  all[0].rdma[0].gids.clear();
  expectOne(all, Severity::kError, "n1", {"mlx5_0:1 has no address (GID)", "Give eth0 an IP address"});
}

TEST(RdmaFindings, NoAddressOfTheNumberThatIsAskedFor) {
  auto all = roceHosts(1);
  all[0].rdma.resize(1);
  all[0].gidIndex = 7;
  expectOne(all, Severity::kError, "n1", {"mlx5_0:1 has no address number 7", "TUTTI_IB_GID_INDEX"});
}

TEST(RdmaFindings, OnlyALinkLocalAddress) {
  auto all = roceHosts(1);
  all[0].rdma.resize(1);
  all[0].rdma[0].gids.resize(2);
  expectOne(all, Severity::kHint, "n1", {"no address but a link-local one"});
}

TEST(RdmaFindings, AddressesOfOtherFamilies) {
  auto all = roceHosts(3);
  for (RdmaPortReport& port : all[2].rdma) port.gids = {{4, "fd00:0000:0000:0000:0000:0000:0000:0003", "RoCE v2"}};
  expectOne(all, Severity::kError, "n3", {"RoCE v2, IPv6, those of most hosts RoCE v2, IPv4", "TUTTI_IB_GID_INDEX"});
}

TEST(RdmaFindings, AnotherFabric) {
  auto all = infinibandHosts(3);
  all[0].rdma = {infiniband("mlx5_0", 1, "fec0:0000:0000:0001"), infiniband("mlx5_1", 2, "fec0:0000:0000:0001")};
  expectOne(all, Severity::kError, "n1", {"subnet fec0:0000:0000:0001, those of most hosts", "fabric"});
}

TEST(RdmaFindings, FewerPortsThanMost) {
  auto all = roceHosts(3);
  all[1].rdma.clear();
  expectOne(all, Severity::kWarning, "n2",
            {"no RDMA device, where most hosts have 2 ports", "--device /dev/infiniband"});
  all = roceHosts(3);
  all[1].rdma.pop_back();
  expectOne(all, Severity::kWarning, "n2", {"1 RDMA ports, where most hosts have 2"});
}

TEST(RdmaFindings, APortThatIsSlowerThanMost) {
  auto all = roceHosts(3);
  all[1].rdma[0].megabits = 25'000;
  expectOne(all, Severity::kWarning, "n2", {"mlx5_0:1 runs at 25 Gbit/s, most at 100", "cable"});
}

TEST(RdmaFindings, ThereAndNotToBeUsed) {
  auto all = roceHosts(3);
  all[0].lacksVerbs = "libtutti_verbs.so is not beside libtutti.so";
  expectOne(all, Severity::kWarning, "n1", {"cannot be used: libtutti_verbs.so is not"});
  for (RdmaPortReport& port : all[0].rdma) port.state = "DOWN";  // which says enough
  const auto findings = findingsOf(all);
  EXPECT_EQ(said(findings).find("libtutti_verbs"), std::string::npos) << said(findings);
}

TEST(LimitFindings, LittleMemoryToLock) {
  auto all = roceHosts(3);
  all[0].limits.lockedBytes = all[2].limits.lockedBytes = 65536;
  expectOne(all, Severity::kWarning, "n1, n3", {"64 KiB of memory may be locked", "ulimit -l"});
  for (HostReport& one : all) one.rdma.clear();  // nobody needs it then
  expectNothing(all);
}

TEST(LimitFindings, FewOpenFiles) {
  auto all = hosts(2);
  all[1].limits.openFiles = 200;
  expectOne(all, Severity::kWarning, "n2",
            {"200 open files, and may be raised to 4096; a rank of this job may want 264", "ulimit -n"});
  all[1].limits.openFiles = 264;
  expectNothing(all);
}

TEST(LimitFindings, FewerProcessorsThanRanks) {
  auto all = hosts(2);
  all[0].ranks = 4;
  all[0].limits.cores = 1.5;
  expectOne(all, Severity::kWarning, "n1", {"grants 1.5 processors to 4 ranks"});
  all[0].limits.cores = 4;
  expectNothing(all);
}

TEST(LimitFindings, LittleMemory) {
  auto all = hosts(1);
  all[0].ranks = 8;
  all[0].limits.memoryBytes = uint64_t{1} << 30;
  expectOne(all, Severity::kHint, "n1", {"1.0 GiB of memory to 8 ranks"});
}

TEST(LimitFindings, WaysBetweenNicAndGpu) {
  auto all = roceHosts(2);
  all[0].nvidiaGpus = 8;
  all[0].iommu = IommuMode::kTranslates;
  expectOne(all, Severity::kHint, "n1", {"IOMMU translates", "iommu=pt"});
  all[0].iommu = IommuMode::kPassthrough;
  all[0].acsRedirects = 2;
  expectOne(all, Severity::kHint, "n1", {"2 PCI bridges", "ACS"});
  all[0].nvidiaGpus = 0;  // nobody goes that way
  expectNothing(all);
}

TEST(OddFindings, AnotherVersion) {
  auto all = hosts(3);
  all[2].version = "0.3.0";
  expectOne(all, Severity::kWarning, "n3", {"it runs tutti 0.3.0, the others 0.2.0"});
}

TEST(OddFindings, AnotherTime) {
  auto all = hosts(3);
  all[0].clockMs -= 90'000;
  expectOne(all, Severity::kHint, "n1", {"its clock is 90.0 s behind the others'"});
}

TEST(PairFindings, OneThatDoesNotWork) {
  auto pairs = pairsOf(4);
  between(pairs, 1, 3).why = "took too long, still connecting";
  expectOne(findingsOf(hosts(4), pairs), Severity::kError, "n2 (rank 1) and n4 (rank 3)",
            {"do not reach each other over tcp: took too long, still connecting", "firewalls"});
}

TEST(PairFindings, AHostThatNobodyReachesIsToldOnce) {
  auto pairs = pairsOf(4);
  for (const size_t other : {0, 1, 3})
    between(pairs, std::min<size_t>(other, 2), std::max<size_t>(other, 2)).why = "No route to host";
  expectOne(findingsOf(hosts(4), pairs), Severity::kError, "n3",
            {"no other host reaches it over tcp: No route to host"});
}

TEST(PairFindings, TwoHostsThatDoNotReachEachOtherAreBothNamed) {
  auto pairs = pairsOf(2, "verbs");
  pairs[0].why = "the peer's port does not answer";
  expectOne(findingsOf(roceHosts(2), pairs), Severity::kError, "n1 (rank 0) and n2 (rank 1)",
            {"over verbs", "docs/verbs.md"});
}

TEST(PairFindings, ASlowWay) {
  auto pairs = pairsOf(4);
  between(pairs, 0, 1).there = between(pairs, 0, 1).back = 0.1;
  expectOne(findingsOf(hosts(4), pairs), Severity::kWarning, "n1 (rank 0) and n2 (rank 1)",
            {"0.1 GB/s over tcp, where both reach 2 with others"});
}

TEST(PairFindings, ASlowHostAmongThree) {
  auto pairs = pairsOf(3);
  for (const size_t other : {0, 1}) between(pairs, other, 2).there = between(pairs, other, 2).back = 0.01;
  expectOne(findingsOf(hosts(3), pairs), Severity::kWarning, "n3",
            {"with no other host it exchanges more than 0.01 GB/s over tcp, where most reach 2"});
}

TEST(PairFindings, HalfTheSpeedIsNoFinding) {
  auto pairs = pairsOf(4);
  between(pairs, 0, 1).there = between(pairs, 0, 1).back = 1;
  expectNothing(hosts(4), pairs);
  expectNothing(hosts(2), pairsOf(2, "tcp", 0.001));  // of two nobody knows what would be right
}

TEST(PairFindings, OneWayIsFarSlower) {
  auto pairs = pairsOf(2);
  pairs[0].back = 0.1;
  expectOne(findingsOf(hosts(2), pairs), Severity::kWarning, "n1 (rank 0) and n2 (rank 1)",
            {"0.1 GB/s over tcp from n2 to n1, and 2 the other way"});
}

TEST(PairFindings, ALateWay) {
  auto pairs = pairsOf(4);
  between(pairs, 0, 1).latencyUs = 50'000;
  expectOne(findingsOf(hosts(4), pairs), Severity::kWarning, "n1 (rank 0) and n2 (rank 1)",
            {"take 50000 us over tcp", "median of all pairs is 20"});
}

TEST(PairFindings, TransportsAreComparedWithThemselves) {
  auto pairs = pairsOf(3);
  const auto faster = pairsOf(3, "verbs", 50);
  pairs.insert(pairs.end(), faster.begin(), faster.end());
  expectNothing(roceHosts(3), pairs);
}

TEST(PairFindings, SlowInsideAHostIsAHint) {
  std::vector<PairResult> pairs;
  for (const int high : {1, 2, 3}) pairs.push_back({0, high, 0, 0, "shm", 1, 10, 10, ""});
  expectNothing(hosts(1), pairs);
  pairs[2].there = 1;
  expectOne(findingsOf(hosts(1), pairs), Severity::kHint, "n1 (rank 0) and n1 (rank 3)", {"1 GB/s over shm"});
}

}  // namespace
}  // namespace tutti::preflight

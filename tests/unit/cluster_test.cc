// The machine that plans see, made of ranks' cards: what links cost, and where that comes from.
#include "team/cluster.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "net/network.h"

namespace tutti::comm {
namespace {

using topology::PeerInfo;

// Two ranks on each host, whose interfaces have these speeds.
std::vector<PeerInfo> hostsWith(std::initializer_list<uint32_t> megabits) {
  std::vector<PeerInfo> infos;
  for (const uint32_t speed : megabits)
    for (int i = 0; i < 2; ++i) {
      PeerInfo info = topology::describeSelf();
      info.hostId = info.machineId = infos.size() / 2 + 1;
      info.processToken = infos.size() + 1;
      info.networkMegabits = speed;
      info.lacks = {{"verbs", "none in tests"}};
      infos.push_back(info);
    }
  return infos;
}

plan::ClusterModel modelOf(const std::vector<PeerInfo>& infos, const plan::Profile& prices = {}) {
  return machineOf(infos, groupsOf(infos, 0), link::builtinTransports(""), prices);
}

TEST(Cluster, TheNetworkCostsWhatItsSlowestInterfaceCarries) {
  const plan::ClusterModel gigabit = modelOf(hostsWith({10'000, 1'000, 2'500}));
  EXPECT_DOUBLE_EQ(gigabit.remote.bandwidthGBs, 0.125 * costs::kNetworkShare);
  EXPECT_EQ(gigabit.remote.latencyUs, costs::kTcpNetwork.latencyUs);
  EXPECT_EQ(gigabit.local, costs::kShm);
  // Who does not know its own says nothing of it.
  EXPECT_DOUBLE_EQ(modelOf(hostsWith({0, 2'500})).remote.bandwidthGBs, 0.3125 * costs::kNetworkShare);
  // No core moves more than it does over loopback.
  EXPECT_EQ(modelOf(hostsWith({100'000, 100'000})).remote.bandwidthGBs, costs::kTcpLoopback.bandwidthGBs);
  EXPECT_EQ(modelOf(hostsWith({0, 0})).remote, costs::kTcpNetwork);
}

// As containers are.
TEST(Cluster, HostsOfOneMachineHearOfEachOtherAsItsProcessesDo) {
  std::vector<PeerInfo> infos = hostsWith({10'000, 1'000});
  for (PeerInfo& info : infos) info.machineId = 77, info.cores = 2, info.coreBits = {std::byte{3}};
  const plan::ClusterModel one = modelOf(infos);
  EXPECT_EQ(one.remote.latencyUs, costs::kTcpLoopback.latencyUs);
  EXPECT_DOUBLE_EQ(one.remote.bandwidthGBs, 0.125 * costs::kNetworkShare);
  EXPECT_EQ(one.hosts, 2);
  EXPECT_EQ(one.ranksPerCore, 2) << "four ranks, of both hosts, on two cores";
  plan::Profile prices;
  prices.tcpNetwork.latencyUs = 15;
  EXPECT_EQ(modelOf(infos, prices).remote.latencyUs, 15) << "somebody knows better";
  infos.back().machineId = 78;
  EXPECT_EQ(modelOf(infos).remote.latencyUs, costs::kTcpNetwork.latencyUs);
}

TEST(Cluster, AProfileKnowsBetter) {
  plan::Profile prices;
  prices.tcpNetwork = {15, 0.8};
  EXPECT_EQ(modelOf(hostsWith({10'000, 1'000}), prices).remote, prices.tcpNetwork);
  prices.tcpNetwork = {15, costs::kTcpNetwork.bandwidthGBs};  // of the latency alone
  const plan::LinkCost both = modelOf(hostsWith({10'000, 1'000}), prices).remote;
  EXPECT_EQ(both.latencyUs, 15);
  EXPECT_DOUBLE_EQ(both.bandwidthGBs, 0.125 * costs::kNetworkShare);
}

TEST(Cluster, SaysWhereAPriceComesFrom) {
  const link::Registry registry = link::builtinTransports("");
  const auto by = [&](const std::vector<PeerInfo>& infos, int peer, const plan::Profile& prices) {
    return pricedWay(infos, 0, peer, registry, prices).by;
  };
  const plan::Profile shipped;
  EXPECT_EQ(by(hostsWith({1'000, 1'000}), 1, shipped), "as shipped");
  EXPECT_EQ(by(hostsWith({1'000, 1'000}), 2, shipped), "by the speed of the network interfaces");
  EXPECT_EQ(by(hostsWith({0, 0}), 2, shipped), "as shipped: the speed of the network is not known");
  plan::Profile prices;
  prices.shm.latencyUs = 1, prices.tcpNetwork.bandwidthGBs = 5;
  EXPECT_EQ(by(hostsWith({1'000, 1'000}), 1, prices), "by the profile");
  EXPECT_EQ(by(hostsWith({1'000, 1'000}), 2, prices), "by the profile");
}

// A transport that is where it is.
class Rdma : public link::Transport {
 public:
  std::string_view name() const noexcept override { return "verbs"; }
  link::Reachability reach(const PeerInfo& self, const PeerInfo& peer) const override {
    return {self.hostId != peer.hostId, 2.5, 11.875, "of one host"};
  }
  std::unique_ptr<link::Setup> open(const link::Edge&, link::OobChannel&) override { return nullptr; }
};

TEST(Cluster, RdmaCostsWhatTheFewestPortsCarry) {
  link::Registry registry;
  registry.add(std::make_unique<Rdma>());
  std::vector<PeerInfo> infos = hostsWith({1'000, 1'000});
  for (PeerInfo& info : infos) info.lacks.clear();
  EXPECT_DOUBLE_EQ(pricedWay(infos, 0, 2, registry, {}).cost.bandwidthGBs, 11.875);
  EXPECT_EQ(pricedWay(infos, 0, 2, registry, {}).by, "by the transport's own word");
  infos[0].rdmaMegabits = infos[1].rdmaMegabits = 400'000;
  infos[2].rdmaMegabits = infos[3].rdmaMegabits = 200'000;
  for (const int from : {0, 3}) {
    const PricedWay way = pricedWay(infos, from, 3 - from, registry, {});
    EXPECT_DOUBLE_EQ(way.cost.bandwidthGBs, 25 * costs::kNetworkShare);
    EXPECT_EQ(way.cost.latencyUs, 2.5);
    EXPECT_EQ(way.by, "by the rates of the RDMA ports");
  }
}

// Whichever rank asks, and whatever it has itself.
TEST(Cluster, AllRanksSeeTheSameMachine) {
  const std::vector<PeerInfo> infos = hostsWith({10'000, 2'500, 0});
  const plan::ClusterModel first = modelOf(infos);
  std::vector<PeerInfo> crossed;
  for (const PeerInfo& info : infos) crossed.push_back(topology::decodePeerInfo(encode(info)));
  const plan::ClusterModel again = modelOf(crossed);
  EXPECT_EQ(again.remote, first.remote);
  EXPECT_EQ(again.local, first.local);
}

// Each rank on the core of this number, of the host at its place.
std::vector<PeerInfo> ranksOn(std::initializer_list<int> cores, std::initializer_list<uint64_t> hosts) {
  std::vector<PeerInfo> infos(cores.size());
  for (size_t r = 0; r < infos.size(); ++r) {
    const auto core = static_cast<size_t>(cores.begin()[r]);
    infos[r].hostId = hosts.begin()[r];
    infos[r].machineId = infos[r].hostId % 10;
    infos[r].coreBits.resize(core / 8 + 1);
    infos[r].coreBits[core / 8] = std::byte{1} << core % 8;
  }
  return infos;
}

Placement placed(const std::vector<PeerInfo>& infos) { return placementOf(infos, groupsOf(infos, 0), modelOf(infos)); }

std::vector<int> chainOf(const std::vector<PeerInfo>& infos) { return placed(infos).chain; }

TEST(Chain, GoesFromCoreToCoreOnce) {
  EXPECT_EQ(chainOf(ranksOn({0, 1, 0, 1}, {1, 1, 1, 1})), (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(chainOf(ranksOn({9, 1, 9, 1}, {1, 1, 1, 1})), (std::vector<int>{2, 0, 3, 1}));
  EXPECT_TRUE(chainOf(ranksOn({0, 1, 2, 3}, {1, 1, 1, 1})).empty());
}

TEST(Chain, LeavesHostsAndMachinesTogether) {
  // Two containers of a machine, 1 and 11, each with ranks on both cores; and ranks of another machine between them.
  EXPECT_EQ(chainOf(ranksOn({1, 0, 0, 1, 0}, {11, 2, 1, 1, 11})), (std::vector<int>{1, 4, 2, 3, 0}));
  // Containers of a rank each go by their cores.
  EXPECT_EQ(chainOf(ranksOn({0, 1, 0, 1}, {1, 11, 21, 31})), (std::vector<int>{0, 2, 1, 3}));
}

TEST(Chain, WhereCoresAreNotKnownGoesByTheNumbers) {
  std::vector<PeerInfo> infos = ranksOn({0, 1, 0}, {1, 1, 1});
  for (PeerInfo& info : infos) info.coreBits.clear();
  EXPECT_EQ(chainOf(infos), (std::vector<int>{0, 1, 2}));
}

TEST(Chain, GoesBothWaysOnOneMachineWhereThatIsShorterByTwo) {
  EXPECT_FALSE(placed(ranksOn({0, 1, 0, 1, 0}, {1, 1, 1, 1, 1})).bothWays);
  EXPECT_TRUE(placed(ranksOn({0, 1, 0, 1, 0, 1}, {1, 1, 1, 1, 1, 1})).bothWays);
  EXPECT_TRUE(placed(ranksOn({0, 1, 0, 1, 0, 1}, {1, 11, 21, 31, 41, 51})).bothWays) << "containers";
  EXPECT_FALSE(placed(ranksOn({0, 1, 0, 1, 0, 1}, {1, 1, 1, 1, 1, 2})).bothWays) << "two machines";
  EXPECT_FALSE(placed(ranksOn({0, 1, 2, 3, 4, 5}, {1, 1, 1, 1, 1, 1})).bothWays);
  EXPECT_FALSE(placed(ranksOn({0, 1, 0, 3, 0, 1}, {1, 1, 1, 1, 1, 1})).bothWays) << "one has a core of its own";
}

std::vector<int> coresOf(const std::vector<PeerInfo>& infos, int groupSize = 0, std::string_view over = "tcp") {
  const std::vector<int> groups = groupsOf(infos, groupSize);
  plan::ClusterModel machine = machineOf(infos, groups, link::builtinTransports(""), {});
  machine.localOver = over;
  const Placement placement = placementOf(infos, groups, machine);
  const std::set<int> all(placement.coreOf.begin(), placement.coreOf.end());
  EXPECT_EQ(placement.cores(), static_cast<int>(all.size()));
  return placement.coreOf;
}

TEST(Cores, OfOneHostAreHostsOfTheirRanksWhereTheyShareThemOutEvenly) {
  const auto eight = ranksOn({5, 3, 5, 3, 5, 3, 5, 3}, {1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(coresOf(eight), (std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_TRUE(coresOf(eight, 2).empty()) << "hosts are given";
  EXPECT_TRUE(coresOf(eight, 0, "shm").empty()) << "over memory";
  EXPECT_TRUE(coresOf(ranksOn({0, 1, 0, 1}, {1, 1, 1, 1})).empty()) << "two ranks each";
  EXPECT_TRUE(coresOf(ranksOn({0, 1, 0, 1, 0, 1, 0, 1, 0}, {1, 1, 1, 1, 1, 1, 1, 1, 1})).empty()) << "five and four";
  EXPECT_TRUE(coresOf(ranksOn({0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1})).empty()) << "one core";
  EXPECT_TRUE(coresOf(ranksOn({0, 1, 0, 1, 0, 1, 0, 1}, {1, 1, 1, 1, 2, 2, 2, 2})).empty()) << "two hosts";
  EXPECT_EQ(coresOf(ranksOn({0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})),
            (std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

TEST(Cores, AreThoseThatRanksAreKeptOn) {
  auto sockets = ranksOn({0, 2, 0, 2, 0, 2, 0, 2}, {1, 1, 1, 1, 1, 1, 1, 1});
  for (PeerInfo& info : sockets) info.coreBits[0] |= info.coreBits[0] << 1;
  EXPECT_TRUE(coresOf(sockets).empty()) << "each may run on two";
  auto unknown = ranksOn({0, 1, 0, 1, 0, 1, 0, 1}, {1, 1, 1, 1, 1, 1, 1, 1});
  for (size_t rank = 0; rank < unknown.size(); rank += 2) unknown[rank].coreBits.clear();
  EXPECT_TRUE(coresOf(unknown).empty());
  auto machines = ranksOn({0, 1, 0, 1, 0, 1, 0, 1}, {1, 1, 1, 1, 1, 1, 1, 1});
  for (size_t rank = 4; rank < machines.size(); ++rank) machines[rank].machineId = 2;
  EXPECT_TRUE(coresOf(machines).empty()) << "of two machines under one host's name";
}

class Speeds : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "tutti-speeds-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  uint32_t megabitsOf(const std::string& content) const {
    const std::string name = chosenInterfaces({}).front().name;
    std::filesystem::create_directories(root_ / "sys/class/net" / name);
    std::ofstream(root_ / "sys/class/net" / name / "speed") << content;
    return firstMegabits({}, root_);
  }
  std::filesystem::path root_;
};

TEST_F(Speeds, AreReadWhereTheKernelKnowsThem) {
  EXPECT_EQ(megabitsOf("25000\n"), 25'000u);
  EXPECT_EQ(megabitsOf("-1\n"), 0u) << "a virtual machine's";
  EXPECT_EQ(megabitsOf("0\n"), 0u);
  EXPECT_EQ(megabitsOf(""), 0u);
  EXPECT_EQ(megabitsOf("fast\n"), 0u);
  EXPECT_EQ(megabitsOf("99999999999999999999\n"), 0u);
  EXPECT_EQ(firstMegabits({}, root_ / "nowhere"), 0u);
  Network none;
  none.interfaces = "=nosuch0";
  EXPECT_EQ(firstMegabits(none), 0u);
}

}  // namespace
}  // namespace tutti::comm

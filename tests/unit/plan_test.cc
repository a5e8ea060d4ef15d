#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "plan/cost.h"
#include "plan/device.h"
#include "plan/set_up.h"
#include "schedule/algorithm.h"

namespace tutti::plan {
namespace {

using schedule::Algorithm;
using schedule::algorithmsFor;
using schedule::Allowed;

constexpr size_t kGiB = size_t{1} << 30;

std::vector<Collective> allCollectives() {
  std::vector<Collective> all;
  for (int i = 0; i < kCollectives; ++i) all.push_back(static_cast<Collective>(i));
  return all;
}

// 0, and every power of two up to 1 GiB with its neighbours.
std::vector<size_t> allSizes() {
  std::vector<size_t> sizes{0};
  for (size_t power = 1; power <= kGiB; power *= 2) sizes.insert(sizes.end(), {power - 1, power, power + 1});
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

ClusterModel oneHost(int ranks, double ranksPerCore = 1) {
  ClusterModel machine;
  machine.ranks = machine.ranksPerHost = ranks;
  machine.ranksPerCore = ranksPerCore;
  return machine;
}

// Loopback TCP between the ranks of one host.
ClusterModel oneHostOverTcp(int ranks) {
  ClusterModel machine = oneHost(ranks);
  machine.local = {.latencyUs = 6, .bandwidthGBs = 1.9};
  return machine;
}

// The same on cores that they share.
ClusterModel onCores(int ranks, int cores) {
  ClusterModel machine = oneHost(ranks, double(ranks) / cores);
  machine.local = costs::kTcpLoopback;
  machine.localOver = "tcp";
  machine.cores = cores;
  return machine;
}

ClusterModel cluster(int hosts, int ranksPerHost) {
  ClusterModel machine = oneHost(hosts * ranksPerHost);
  machine.hosts = hosts;
  machine.ranksPerHost = ranksPerHost;
  machine.remote = {.latencyUs = 15, .bandwidthGBs = 12};
  return machine;
}

std::vector<ClusterModel> someMachines() {
  return {oneHost(1),    oneHost(2),        oneHost(3),     oneHost(8),     oneHost(8, 4), oneHost(64),
          oneHost(200),  oneHostOverTcp(4), cluster(2, 1),  cluster(2, 2),  onCores(8, 2), onCores(16, 4),
          cluster(8, 1), cluster(3, 5),     cluster(32, 8), cluster(512, 8)};
}

Choice best(Collective collective, size_t bytes, const ClusterModel& machine) {
  return choose({collective, bytes}, machine, {}, 0).best;
}

bool has(Collective collective, Algorithm algorithm) {
  const auto algorithms = algorithmsFor(collective);
  return std::find(algorithms.begin(), algorithms.end(), algorithm) != algorithms.end();
}

void expectPossible(Collective collective, size_t bytes, const ClusterModel& machine) {
  const Choice choice = best(collective, bytes, machine);
  if (collective != Collective::kSendRecv) {
    EXPECT_TRUE(has(collective, choice.algorithm)) << nameOf(collective) << ' ' << bytes << ' ' << machine.ranks;
  }
  EXPECT_GE(choice.channels, 1);
  EXPECT_GE(choice.predictedUs, 0);
}

TEST(Plan, EveryCollectiveAndSizeGetsAnAlgorithmItHas) {
  for (Collective collective : allCollectives()) {
    for (const ClusterModel& machine : someMachines()) {
      for (size_t bytes : allSizes()) expectPossible(collective, bytes, machine);
    }
  }
}

TEST(Plan, EveryNumberOfRanksGetsAnAlgorithm) {
  for (int ranks = 1; ranks <= 4096; ranks += ranks < 140 ? 1 : 13) {
    for (Collective collective : allCollectives()) {
      for (size_t bytes : {size_t{0}, size_t{8}, size_t{1} << 20, kGiB})
        expectPossible(collective, bytes, oneHost(ranks));
    }
  }
}

TEST(Plan, EveryAlgorithmIsChosenRankedOrExcludedWithAReason) {
  for (Collective collective : allCollectives()) {
    for (const ClusterModel& machine : someMachines()) {
      const Plan plan = choose({collective, 1 << 16}, machine, {}, 0);
      for (Algorithm algorithm : algorithmsFor(collective)) {
        const std::string prefix = std::string(nameOf(algorithm)) + ": ";
        int times = plan.best.algorithm == algorithm;
        for (const Choice& other : plan.others) times += other.algorithm == algorithm;
        for (const std::string& text : plan.excluded)
          times += text.starts_with(prefix) && text.size() > prefix.size() + 10;
        EXPECT_EQ(times, 1) << nameOf(algorithm) << " of " << nameOf(collective) << ", ranks " << machine.ranks;
      }
    }
  }
}

TEST(Plan, TheBestIsTheCheapestAndTheOthersAreSorted) {
  for (const ClusterModel& machine : someMachines()) {
    for (size_t bytes : allSizes()) {
      const Plan plan = choose({Collective::kAllReduce, bytes}, machine, {}, 0);
      const auto cost = [](const Choice& one) { return one.predictedUs + setUpShareUs(one.setUpUs); };
      double last = cost(plan.best);
      for (const Choice& other : plan.others) {
        EXPECT_GE(cost(other), last);
        last = cost(other);
      }
    }
  }
}

TEST(Plan, AForcedAlgorithmAndChannelCountAreHonoured) {
  for (Collective collective : allCollectives()) {
    for (Algorithm algorithm : algorithmsFor(collective)) {
      for (const ClusterModel& machine : someMachines()) {
        const Plan plan = choose({collective, 4096}, machine, algorithm, 3);
        EXPECT_EQ(plan.best.algorithm, algorithm) << nameOf(collective) << ", ranks " << machine.ranks;
        EXPECT_EQ(plan.best.channels, 3);
      }
    }
  }
}

TEST(Plan, AForcedAlgorithmThatTheCollectiveLacksIsReported) {
  ASSERT_FALSE(has(Collective::kAllToAll, Algorithm::kTree));
  const Plan plan = choose({Collective::kAllToAll, 4096}, oneHost(4), Algorithm::kTree, 0);
  EXPECT_TRUE(has(Collective::kAllToAll, plan.best.algorithm));
  ASSERT_EQ(plan.excluded.size(), 1u);
  EXPECT_EQ(plan.excluded[0], "tree: all-to-all has no such algorithm");
}

bool tells(const Plan& plan, const std::string& line) { return std::ranges::count(plan.excluded, line) == 1; }

TEST(Plan, AListIsAChoiceAmongThoseThatItNames) {
  const Allowed list = Allowed::only({Algorithm::kRing, Algorithm::kTree, Algorithm::kBruck});
  for (const ClusterModel& machine : someMachines())
    for (const size_t bytes : allSizes()) {
      const Plan plan = choose({Collective::kAllReduce, bytes}, machine, list, 0);
      const bool tree = plan.best.algorithm == Algorithm::kTree;
      EXPECT_TRUE(tree || plan.best.algorithm == Algorithm::kRing);
      ASSERT_EQ(plan.others.size(), 1u);
      EXPECT_EQ(plan.others[0].algorithm, tree ? Algorithm::kRing : Algorithm::kTree);
      EXPECT_TRUE(tells(plan, "oneshot: not allowed by TUTTI_ALGO (config.algorithm)"));
      EXPECT_FALSE(tells(plan, "bruck: not allowed by TUTTI_ALGO (config.algorithm)"));
    }
}

// But for the one that is left out, all is as without a word.
TEST(Plan, WhatIsLeftOutIsNotChosen) {
  for (const ClusterModel& machine : someMachines())
    for (const size_t bytes : allSizes()) {
      const Plan plan = choose({Collective::kAllReduce, bytes}, machine, {}, 0);
      const Plan without = choose({Collective::kAllReduce, bytes}, machine, Allowed::allBut({plan.best.algorithm}), 0);
      if (plan.others.empty()) continue;
      EXPECT_EQ(without.best.algorithm, plan.others[0].algorithm);
      EXPECT_TRUE(
          tells(without, std::string(nameOf(plan.best.algorithm)) + ": not allowed by TUTTI_ALGO (config.algorithm)"));
    }
}

TEST(Plan, WhereNoneIsAllowedAllCount) {
  const Plan usual = choose({Collective::kGather, 4096}, oneHost(4), {}, 0);
  const auto has = algorithmsFor(Collective::kGather);
  const Plan plan = choose({Collective::kGather, 4096}, oneHost(4), Allowed::allBut(has), 0);
  EXPECT_EQ(plan.best.algorithm, usual.best.algorithm);
  EXPECT_EQ(plan.others.size(), usual.others.size());
  const std::string told = ": gather has no such algorithm, so that all that it has were weighed";
  EXPECT_EQ(std::ranges::count_if(plan.excluded, [&](const auto& line) { return line.ends_with(told); }), 1);
  EXPECT_TRUE(choose({Collective::kSendRecv, 4096}, oneHost(4), {}, 0).excluded.empty());
}

// What is allowed and unwise is taken before what is wise and not allowed.
TEST(Plan, AListOfUnwiseOnesIsKeptTo) {
  const ClusterModel machine = oneHost(4);
  const Allowed unwise = Allowed::only({Algorithm::kHierarchical, Algorithm::kBruck});
  const Plan plan = choose({Collective::kAllReduce, 64}, machine, unwise, 0);
  EXPECT_EQ(plan.best.algorithm, Algorithm::kHierarchical);
  EXPECT_TRUE(plan.others.empty());
}

std::string deviceChoice(const DeviceMachine& machine, Allowed algorithms, AllowedProtocols protocols) {
  const DeviceChoice choice = chooseDevice({Collective::kAllReduce, 1 << 16}, machine, algorithms, protocols, 0);
  return std::string(nameOf(choice.algorithm)) + " over " + std::string(nameOf(choice.protocol));
}

TEST(Plan, OnGpusListsOfAlgorithmsAndProtocolsAreKeptTo) {
  DeviceMachine machine;
  machine.ranks = 8, machine.channels = 8;
  const AllowedProtocols notSimple = AllowedProtocols::allBut({Protocol::kSimple});
  for (const size_t bytes : allSizes()) {
    const Request request{Collective::kAllReduce, bytes};
    const Allowed two = Allowed::only({Algorithm::kRing, Algorithm::kTree});
    const DeviceChoice choice = chooseDevice(request, machine, two, notSimple, 0);
    EXPECT_TRUE(two.has(choice.algorithm) && choice.protocol != Protocol::kSimple);
    EXPECT_TRUE(two.has(chooseStreamed(request, machine, two).algorithm));
    const DeviceChoice usual = chooseDevice(request, machine, {}, {}, 0);
    EXPECT_NE(chooseDevice(request, machine, Allowed::allBut({usual.algorithm}), {}, 0).algorithm, usual.algorithm);
  }
}

TEST(Plan, OnGpusWhatIsNamedAndDoesNotFitGivesWay) {
  DeviceMachine machine;
  machine.ranks = 8, machine.channels = 8, machine.linesMoveWhole = false;
  const AllowedProtocols onlyLines = AllowedProtocols::allBut({Protocol::kSimple, Protocol::kLL});
  EXPECT_EQ(deviceChoice(machine, {}, onlyLines), deviceChoice(machine, {}, {})) << "over PCIe LL128 is wrong";
  EXPECT_EQ(deviceChoice(machine, Algorithm::kRing, Protocol::kLL128), "ring over ll128") << "what is forced is taken";
  machine.mostLinks = 2;
  const Allowed toAll = Allowed::only({Algorithm::kOneShot, Algorithm::kTwoShot});
  EXPECT_EQ(deviceChoice(machine, toAll, {}), deviceChoice(machine, {}, {})) << "a block has not the links";
  EXPECT_EQ(deviceChoice(machine, Algorithm::kOneShot, Protocol::kLL), "oneshot over ll");
}

// What neighbours carry counts for the ring alone.
TEST(Plan, OnGpusARingGoesByItsOrder) {
  DeviceMachine machine;
  machine.ranks = 8, machine.channels = 32, machine.gpuGBs = 10;
  const Request request{Collective::kAllReduce, 256 << 20};
  const auto us = [&](Algorithm algorithm) {
    return chooseDevice(request, machine, algorithm, Protocol::kSimple, 0).predictedUs;
  };
  const double ring = us(Algorithm::kRing), twoShot = us(Algorithm::kTwoShot), tree = us(Algorithm::kTree);
  machine.ringGBs = 40;
  EXPECT_LT(us(Algorithm::kRing), ring / 3);
  EXPECT_EQ(us(Algorithm::kTwoShot), twoShot);
  EXPECT_EQ(us(Algorithm::kTree), tree);
  EXPECT_EQ(chooseDevice(request, machine, {}, {}, 0).algorithm, Algorithm::kRing);
}

// Where a host's GPUs share a NIC, one of them that sends alone has all of it; all at once have a part each.
TEST(Plan, OnGpusWhoSendsOutwardAloneHasTheNic) {
  DeviceMachine machine;
  machine.ranks = 16, machine.channels = 8, machine.hosts = 2, machine.linesMoveWhole = false;
  machine.gpuGBs = 10, machine.networkGBs = 1;
  const Request request{Collective::kAllReduce, 1 << 30};
  const auto us = [&](Algorithm algorithm) {
    return chooseDevice(request, machine, algorithm, Protocol::kSimple, 0).predictedUs;
  };
  const double ring = us(Algorithm::kRing), tree = us(Algorithm::kTree), twoShot = us(Algorithm::kTwoShot);
  machine.nicGBs = 8;
  EXPECT_NEAR(ring / us(Algorithm::kRing), 8, 0.5);
  EXPECT_NEAR(tree / us(Algorithm::kTree), 4, 0.5);  // two of a host send
  EXPECT_EQ(us(Algorithm::kTwoShot), twoShot);
}

// Inside a host it has a link to every rank, of which a block serves so many.
TEST(Plan, OnGpusHierarchicalNeedsNoMoreLinksThanABlockHas) {
  DeviceMachine machine;
  machine.ranks = 128, machine.channels = 8, machine.hosts = 2, machine.networkGBs = 1;
  const Request request{Collective::kAllReduce, 256 << 20};
  EXPECT_NE(chooseDevice(request, machine, {}, {}, 0).algorithm, Algorithm::kHierarchical);
  machine.ranks = 64;
  EXPECT_EQ(chooseDevice(request, machine, {}, {}, 0).algorithm, Algorithm::kHierarchical);
  machine.ranksPerHost = 63;  // of unlike hosts
  EXPECT_NE(chooseDevice(request, machine, {}, {}, 0).algorithm, Algorithm::kHierarchical);
}

TEST(Plan, HierarchicalNeedsHostsWithSeveralRanks) {
  const auto reasonOn = [](const ClusterModel& machine) {
    for (const std::string& text : choose({Collective::kAllReduce, 4096}, machine, {}, 0).excluded) {
      if (text.starts_with("hierarchical: ")) return text;
    }
    return std::string();
  };
  EXPECT_EQ(reasonOn(oneHost(8)), "hierarchical: all ranks are on one host");
  EXPECT_EQ(reasonOn(cluster(8, 1)), "hierarchical: every host has one rank only");
  EXPECT_EQ(reasonOn(cluster(8, 8)), "");
}

// What the ranks of a core have among themselves is in its cache: that counts where messages are longer than a cache.
TEST(Plan, CoresThatRanksShareAreHostsForLongMessagesOverSockets) {
  ClusterModel machine = onCores(8, 2);
  const auto chosen = [&](Collective collective, size_t bytes) {
    return best(collective, schedule::requestBytes(collective, bytes, 8), machine).algorithm;
  };
  for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter}) {
    machine.cores = 0;
    EXPECT_NE(chosen(collective, 16 << 20), Algorithm::kHierarchical) << nameOf(collective);
    machine.cores = 2;
    EXPECT_EQ(chosen(collective, 16 << 20), Algorithm::kHierarchical) << nameOf(collective);
    EXPECT_EQ(chosen(collective, 2 << 20), Algorithm::kHierarchical) << nameOf(collective);
    for (const size_t bytes : {8 << 10, 1 << 20})
      EXPECT_NE(chosen(collective, bytes), Algorithm::kHierarchical) << nameOf(collective) << ' ' << bytes;
  }
  for (const Collective collective : {Collective::kBroadcast, Collective::kReduce})
    for (const size_t bytes : allSizes())
      EXPECT_NE(chosen(collective, bytes), Algorithm::kHierarchical) << nameOf(collective) << ' ' << bytes;
  EXPECT_EQ(linksOf(Algorithm::kHierarchical, {Collective::kAllReduce, 8}, machine), 3 + 1);
}

TEST(Plan, SmallMessagesTakeFewSteps) {
  for (int ranks : {2, 4, 8}) {
    for (const ClusterModel& machine : {oneHost(ranks), oneHost(ranks, 4)})
      EXPECT_EQ(best(Collective::kAllReduce, 8, machine).algorithm, Algorithm::kOneShot) << ranks;
    // Through the kernel each message costs more than a step.
    EXPECT_EQ(best(Collective::kAllReduce, 8, oneHostOverTcp(ranks)).algorithm,
              ranks < 8 ? Algorithm::kOneShot : Algorithm::kDoubling)
        << ranks;
  }
  const ClusterModel many = oneHost(1024);
  EXPECT_LE(workOf(best(Collective::kAllReduce, 8, many).algorithm, {Collective::kAllReduce, 8}, many).steps, 20);
}

TEST(Plan, LargeMessagesMoveTheFewestBytes) {
  constexpr double kBytes = 256 << 20;
  for (const ClusterModel& machine :
       {oneHost(2), oneHost(4), oneHost(8), oneHost(8, 4), oneHostOverTcp(8), cluster(8, 1)}) {
    const Request request{Collective::kAllReduce, size_t(kBytes)};
    const schedule::Workload work =
        workOf(best(request.collective, request.bytes, machine).algorithm, request, machine);
    EXPECT_LE(work.busiest.sent, 2 * kBytes) << machine.ranks;
    EXPECT_LE(work.busiest.combined, kBytes) << machine.ranks;
  }
  EXPECT_EQ(best(Collective::kAllReduce, size_t(kBytes), oneHost(8)).algorithm, Algorithm::kTwoShot);
  EXPECT_EQ(best(Collective::kAllReduce, size_t(kBytes), cluster(8, 1)).algorithm, Algorithm::kRing);
}

// Two ranks have nothing to gain from a second step until its cost is a small part of the whole.
TEST(Plan, TwoRanksWithCoresOfTheirOwnStayWithOneShotUpToHalfAMegabyte) {
  EXPECT_EQ(best(Collective::kAllReduce, 256 << 10, oneHost(2)).algorithm, Algorithm::kOneShot);
  EXPECT_EQ(best(Collective::kAllReduce, 4 << 20, oneHost(2)).algorithm, Algorithm::kTwoShot);
}

// Whoever has passed it on goes on with the next: so a row of ranks is best where one machine has them all, and would
// be far too long where they wait for each other over a network.
TEST(Plan, BroadcastsOfCrowdedContainersAreOfMany) {
  ClusterModel machine = cluster(8, 1);
  machine.ranksPerCore = 4;
  const auto chosen = [&] { return choose({Collective::kBroadcast, 8}, machine, {}, 0).best.algorithm; };
  EXPECT_NE(chosen(), Algorithm::kRing);
  machine.machines = 8;
  EXPECT_NE(chosen(), Algorithm::kRing);
  machine.machines = 1;
  EXPECT_EQ(chosen(), Algorithm::kRing);
}

// The same over memory, as long as they are short: of longer ones the root stores slots once for all.
TEST(Plan, ShortBroadcastsOfRanksThatShareCoresGoAlongTheRow) {
  for (const int ranks : {4, 8}) {
    EXPECT_EQ(best(Collective::kBroadcast, 1 << 10, oneHost(ranks, ranks / 2)).algorithm, Algorithm::kRing);
    EXPECT_NE(best(Collective::kBroadcast, 64 << 10, oneHost(ranks, ranks / 2)).algorithm, Algorithm::kRing);
    EXPECT_NE(best(Collective::kBroadcast, 1 << 10, oneHost(ranks)).algorithm, Algorithm::kRing);
  }
}

TEST(Plan, OneCrowdedCoreAmongManyMakesNoLongRow) {
  ClusterModel machine = oneHost(64, 1.1);
  EXPECT_NE(best(Collective::kBroadcast, 1 << 10, machine).algorithm, Algorithm::kRing);
  machine.local = costs::kTcpLoopback;
  EXPECT_NE(best(Collective::kBroadcast, 1 << 10, machine).algorithm, Algorithm::kRing);
}

TEST(Plan, TwoRanksOverTcpSendWholeMessagesUpToAMebibyte) {
  ClusterModel machine = oneHost(2);
  machine.local = costs::kTcpLoopback;
  EXPECT_EQ(best(Collective::kAllReduce, 1 << 20, machine).algorithm, Algorithm::kOneShot);
  EXPECT_EQ(best(Collective::kAllReduce, 2 << 20, machine).algorithm, Algorithm::kTwoPass);
}

// In place one-shot and doubling copy their input first, where links have drivers, but of two ranks.
TEST(Plan, WhatIsCopiedInPlaceCountsWhereThereAreMoreThanTwo) {
  const auto keptBy = [](Algorithm algorithm, int ranks) {
    return workOf(algorithm, {Collective::kAllReduce, 1 << 20}, oneHost(ranks)).kept;
  };
  for (const Algorithm algorithm : {Algorithm::kOneShot, Algorithm::kDoubling}) {
    EXPECT_EQ(keptBy(algorithm, 2), 0);
    EXPECT_GT(keptBy(algorithm, 3), 0);
  }
}

// Each round of a two-shot waits for the one before, whatever the containers' networks are said to carry.
TEST(Plan, ContainersOfOneMachineTakeTwoPasses) {
  ClusterModel machine = cluster(4, 1);
  machine.machines = 1;
  machine.ranksPerCore = 2;
  EXPECT_EQ(best(Collective::kAllReduce, 4 << 20, machine).algorithm, Algorithm::kTwoPass);
  machine.machines = 0;
  machine.ranksPerCore = 1;
  EXPECT_NE(best(Collective::kAllReduce, 4 << 20, machine).algorithm, Algorithm::kTwoPass);
}

// Nobody waits for a wire, or for who else would pass through a switch.
TEST(Plan, ContainersOfOneMachineAreAsFarApartAsItsRanks) {
  ClusterModel machine = cluster(4, 1);
  machine.remote = {costs::kTcpLoopback.latencyUs, costs::kTcpNetwork.bandwidthGBs};
  ClusterModel containers = machine;
  containers.machines = 1;
  for (const Algorithm algorithm : {Algorithm::kHalving, Algorithm::kDirect}) {
    const schedule::Request request{Collective::kAllGather, 4 << 20};
    EXPECT_LT(predictUs(algorithm, request, containers), predictUs(algorithm, request, machine));
  }
  EXPECT_EQ(best(Collective::kAllGather, 4 << 20, containers).algorithm, Algorithm::kDirect);
}

// Those that meet for their hosts share the machine's cores as well.
TEST(Plan, LeadersOfContainersTakeTurns) {
  ClusterModel machine = cluster(4, 2);
  machine.ranksPerCore = 2;
  const double own = predictUs(Algorithm::kHierarchical, {Collective::kAllReduce, 1 << 20}, machine);
  machine.ranksPerCore = 4;
  std::array<schedule::Stage, 2> stages;
  ASSERT_TRUE(schedule::rowOf(Algorithm::kHierarchical).stages({Collective::kAllReduce, 1 << 20}, machine, stages));
  EXPECT_EQ(stages[1].scale.ranksPerCore, 2);
  EXPECT_GT(predictUs(Algorithm::kHierarchical, {Collective::kAllReduce, 1 << 20}, machine), own);
}

TEST(Plan, PredictedTimesGrowWithSize) {
  for (Collective collective : allCollectives()) {
    for (Algorithm algorithm : algorithmsFor(collective)) {
      for (const ClusterModel& machine : someMachines()) {
        double last = 0;
        for (size_t bytes : allSizes()) {
          const double now = predictUs(algorithm, {collective, bytes}, machine);
          EXPECT_GE(now, last * (1 - 1e-12)) << nameOf(algorithm) << ' ' << nameOf(collective) << ' ' << bytes;
          last = now;
        }
      }
    }
  }
}

TEST(Plan, CrowdedCoresMakeEverythingSlower) {
  for (Algorithm algorithm : algorithmsFor(Collective::kAllReduce)) {
    for (size_t bytes : {size_t{8}, size_t{1} << 20}) {
      EXPECT_GT(predictUs(algorithm, {Collective::kAllReduce, bytes}, oneHost(8, 4)),
                predictUs(algorithm, {Collective::kAllReduce, bytes}, oneHost(8)));
    }
  }
}

// 64 ranks on two cores, where links from everyone to everyone take a second.
TEST(Plan, ManyRanksOfACoreMakeNoLinksToAllForOneCall) {
  for (size_t bytes = 1; bytes < 1 << 20; bytes *= 2) {
    const Plan plan = choose({Collective::kAllReduce, bytes}, oneHost(64, 32), {}, 0);
    EXPECT_FALSE(schedule::rowOf(plan.best.algorithm).linksToAll) << bytes;
  }
}

// What all ranks' segments share a slot for takes many slots when it is long, and in a crowd each of them a turn.
TEST(Plan, LongMessagesOfManyRanksOfACoreAreNotPacked) {
  const auto algorithm = best(Collective::kAllReduce, 1 << 20, oneHost(256, 128)).algorithm;
  EXPECT_FALSE(packsAllRanks(algorithm, Collective::kAllReduce, 8)) << nameOf(algorithm);
}

TEST(Plan, LinksCountOnlyWhereTheyTakeLong) {
  for (const ClusterModel& machine : {oneHost(2), oneHost(8), oneHost(8, 4), oneHost(32), cluster(2, 8)}) {
    for (const Algorithm algorithm : algorithmsFor(Collective::kAllReduce))
      EXPECT_EQ(setUpShareUs(setUpUs(algorithm, {Collective::kAllReduce, 8}, machine)), 0) << machine.ranks;
  }
  const double share = setUpShareUs(setUpUs(Algorithm::kOneShot, {Collective::kAllReduce, 8}, oneHost(64, 32)));
  EXPECT_GT(share, 0);
  EXPECT_NE(describe({Algorithm::kOneShot, 1, 1, setUpUs(Algorithm::kOneShot, {}, oneHost(64, 32))})
                .find(" ms for its links"),
            std::string::npos);
}

TEST(Plan, LinksAreThoseOfTheStages) {
  const Request request{Collective::kAllReduce, 8};
  EXPECT_EQ(linksOf(Algorithm::kTwoShot, request, oneHost(64)), 63);
  EXPECT_EQ(linksOf(Algorithm::kRing, request, oneHost(2)), 1);
  EXPECT_LE(linksOf(Algorithm::kHalving, request, oneHost(64)), 6);
  EXPECT_EQ(linksOf(Algorithm::kHierarchical, request, cluster(4, 8)), 7 + 2) << "the host's, and a ring's";
}

TEST(Plan, NamesOfAlgorithms) {
  for (int i = 0; i < schedule::algorithmCount(); ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    EXPECT_EQ(schedule::algorithmByName(nameOf(algorithm)), algorithm);
  }
  try {
    schedule::algorithmByName("rign");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    const std::string text = error.what();
    for (int i = 0; i < schedule::algorithmCount(); ++i) {
      EXPECT_NE(text.find(nameOf(static_cast<Algorithm>(i))), std::string::npos) << text;
    }
    EXPECT_NE(text.find("'rign'"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tutti::plan

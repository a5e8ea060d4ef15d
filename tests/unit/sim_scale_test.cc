// What a simulation leaves out to be quick must not change what it says.
#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/walk.h"
#include "proof/verify.h"
#include "sim/simulate.h"
#include "tests/unit/sim_clusters.h"

namespace tutti::sim {
namespace {

using schedule::Algorithm;
using schedule::Schedule;

constexpr size_t kMiB = size_t{1} << 20;
constexpr Ways kOneHost{.fold = Shortcut::kAlways, .ringForm = Shortcut::kNever, .extrapolate = Shortcut::kNever};

Result inFull(Algorithm algorithm, const Cluster& cluster, const Message& message) {
  return simulate(algorithm, cluster, message, {.fold = Shortcut::kNever, .extrapolate = Shortcut::kNever});
}

TEST(SimScale, OneRanksRingStandsForAll) {
  for (const int ranks : {2, 3, 8, 33}) {
    const Cluster cluster = knownCluster("ethernet-host", ranks, 1);
    for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter}) {
      const Message message{collective, static_cast<size_t>(ranks) * kMiB};
      const Result full = inFull(Algorithm::kRing, cluster, message);
      const Result folded = simulate(Algorithm::kRing, cluster, message, kOneHost);
      EXPECT_TRUE(folded.folded);
      EXPECT_FALSE(folded.evened);
      EXPECT_DOUBLE_EQ(folded.us, full.us) << ranks << " ranks, " << nameOf(collective);
    }
  }
}

// Also where the last segments of the message are shorter than the others, or empty.
TEST(SimScale, OneHostStandsForAll) {
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kHierarchical}) {
    for (const int hosts : {3, 5, 8}) {  // of two each adds in an order of its own
      const Cluster cluster = knownCluster("hgx-h100", hosts);
      const size_t even = static_cast<size_t>(hosts) * 8 * kMiB;
      for (const size_t bytes : {size_t{1000}, size_t{100'000}, even, even + 100}) {
        const Message message{Collective::kAllReduce, bytes};
        const Result full = inFull(algorithm, cluster, message);
        const Result folded = simulate(algorithm, cluster, message, kOneHost);
        EXPECT_EQ(folded.evened, bytes != even);
        EXPECT_NEAR(folded.us / full.us, 1, 0.01) << nameOf(algorithm) << " on " << hosts << " hosts, " << bytes;
      }
    }
  }
}

TEST(SimScale, NoHostOfATreeStandsForAll) {
  const Cluster cluster = knownCluster("hgx-h100", 4);
  EXPECT_THROW(simulate(Algorithm::kTree, cluster, {Collective::kAllReduce, kMiB}, {.fold = Shortcut::kAlways}), Error);
}

TEST(SimScale, TheRestOfTheRoundsFollowsFromSome) {
  for (const Algorithm algorithm :
       {Algorithm::kRing, Algorithm::kTree, Algorithm::kHierarchical, Algorithm::kTwoShot, Algorithm::kHalving}) {
    for (const char* system : {"hgx-h100", "ethernet-host"}) {
      Cluster cluster = knownCluster(system, 2, 4);
      cluster.channels = 2;
      const Message message{Collective::kAllReduce, 512 * kMiB + 4096};
      const Result full = inFull(algorithm, cluster, message);
      const Result partly =
          simulate(algorithm, cluster, message, {.fold = Shortcut::kNever, .extrapolate = Shortcut::kAlways});
      EXPECT_LT(partly.roundsRun, partly.rounds);
      EXPECT_NEAR(partly.us / full.us, 1, 0.01) << nameOf(algorithm) << " on " << system;
    }
  }
}

// Also where a message takes many hops from end to end.
TEST(SimScale, TheRestOfTheRoundsFollowsFromSomeOnMoreRanks) {
  struct Case {
    Algorithm algorithm;
    Collective collective;
  };
  for (const Case& each : {Case{Algorithm::kTree, Collective::kAllReduce}, Case{Algorithm::kTree, Collective::kReduce},
                           Case{Algorithm::kRing, Collective::kBroadcast}}) {
    Cluster cluster = knownCluster("hgx-h100", 16);
    cluster.channels = 1;
    const Message message{each.collective, 256 * kMiB};
    const Result full = inFull(each.algorithm, cluster, message);
    const Result partly =
        simulate(each.algorithm, cluster, message, {.fold = Shortcut::kNever, .extrapolate = Shortcut::kAlways});
    EXPECT_LT(partly.roundsRun, partly.rounds);
    EXPECT_NEAR(partly.us / full.us, 1, 0.01) << nameOf(each.algorithm) << " of " << nameOf(each.collective);
  }
}

TEST(SimScale, MoreBandwidthIsNeverSlower) {
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kHierarchical}) {
    double before = 1e300;
    for (const double gbs : {1.0, 2.0, 5.0, 12.0, 48.0}) {
      Cluster cluster = knownCluster("ethernet-host", 4);
      cluster.nics[0].gbs = gbs;
      const double us = simulate(algorithm, cluster, {Collective::kAllReduce, 8 * kMiB}).us;
      EXPECT_LE(us, before) << nameOf(algorithm) << " at " << gbs << " GB/s";
      before = us;
    }
  }
}

TEST(SimScale, TheSameQuestionHasTheSameAnswer) {
  const Cluster cluster = knownCluster("hgx-h100", 4);
  for (const Algorithm algorithm : schedule::algorithmsFor(Collective::kAllReduce)) {
    const Message message{Collective::kAllReduce, kMiB};
    const Result first = simulate(algorithm, cluster, message), second = simulate(algorithm, cluster, message);
    EXPECT_EQ(first.us, second.us) << nameOf(algorithm);
    EXPECT_EQ(first.events, second.events);
    EXPECT_EQ(first.bytes, second.bytes);
  }
}

constexpr Collective kSimulated[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                                     Collective::kBroadcast, Collective::kReduce,    Collective::kAllToAll,
                                     Collective::kGather,    Collective::kScatter};

std::vector<Schedule> schedulesOf(Algorithm algorithm, const Cluster& cluster, const Message& message) {
  const schedule::Shape shape = shapeOf(algorithm, cluster, message);
  std::vector<Schedule> all;
  for (int rank = 0; rank < shape.size; ++rank) all.push_back(schedule::build(algorithm, shape, rank));
  return all;
}

// Every collective of every algorithm ends, with bytes that passed something; and what is run is proved.
TEST(SimScale, EveryAlgorithmRunsSchedulesThatAreProved) {
  for (const Cluster& cluster : {knownCluster("dgx-a100", 2, 3), knownCluster("hgx-h100", 4)})
    for (const Collective collective : kSimulated)
      for (const Algorithm algorithm : schedule::algorithmsFor(collective)) {
        SCOPED_TRACE(::testing::Message() << nameOf(algorithm) << " of " << nameOf(collective));
        const Message message{collective, kMiB, hasRoot(collective) ? 4 : 0};
        const std::vector<Schedule> schedules = schedulesOf(algorithm, cluster, message);
        EXPECT_TRUE(proof::verify(schedules, static_cast<int>(cluster.depth)).ok);
        const Result result = simulate(schedules, cluster, message);
        EXPECT_EQ(result.us, simulate(algorithm, cluster, message).us);
        EXPECT_GT(result.us, 0);
        EXPECT_GT(result.busiestShare, 0);
        EXPECT_LE(result.firstUs, result.us);
      }
}

// Whoever it is that one host may stand for.
TEST(SimScale, OneHostStandsForAllOfAnyAlgorithm) {
  const Cluster cluster = knownCluster("hgx-h100", 4);
  int folded = 0;
  for (const Collective collective : kSimulated)
    for (const Algorithm algorithm : schedule::algorithmsFor(collective)) try {
        const Message message{collective, 32 * kMiB};
        const double us = simulate(algorithm, cluster, message, kOneHost).us;
        EXPECT_NEAR(us / inFull(algorithm, cluster, message).us, 1, 0.01)
            << nameOf(algorithm) << " of " << nameOf(collective);
        ++folded;
      } catch (const Error&) {  // it does not
      }
  EXPECT_GE(folded, 8);
}

// Of uneven and of empty segments, on any channel, also where they wrap around.
TEST(SimScale, CountsWhatTheLanesCount) {
  for (const size_t bytes : {4, 100, 5000, 99'999, 3'000'000})
    for (const Collective collective : {Collective::kAllReduce, Collective::kAllToAll})
      for (const uint32_t segments : {1, 7, 16}) {
        Schedule schedule;
        schedule.segments = segments;
        schedule.size = static_cast<int>(segments);
        if (collective == Collective::kAllToAll) schedule.map = schedule::SegmentMap::kPerRank;
        kernels::Layout layout = layoutOf({collective, bytes}, schedule, 64 << 10);
        layout.channels = 3;
        schedule::Step step;
        for (layout.channel = 0; layout.channel < 3; ++layout.channel)
          for (step.segment = 0; step.segment < segments; ++step.segment)
            for (step.span = 1; step.span <= segments; ++step.span)
              for (size_t round = 0; round <= layout.rounds(); ++round)
                ASSERT_EQ(countOf(layout, step, round), kernels::countOf(layout, step, round, false))
                    << bytes << " bytes, segments " << step.segment << " + " << step.span << " of " << segments;
      }
}

TEST(SimScale, RefusesWhatMakesNoSense) {
  EXPECT_THROW(knownCluster("hgx-h100", 0), Error);
  EXPECT_THROW(simulate(Algorithm::kBruck, knownCluster("hgx-h100", 2), {Collective::kBroadcast, kMiB}), Error);
  EXPECT_THROW(simulate(Algorithm::kTree, knownCluster("hgx-h100", 2), {Collective::kBroadcast, kMiB, 16}), Error);
  Cluster broken = knownCluster("ethernet-host", 2);
  broken.nics[0].gbs = 0;
  EXPECT_THROW(simulate(Algorithm::kRing, broken, {Collective::kAllReduce, kMiB}), Error);
}

}  // namespace
}  // namespace tutti::sim

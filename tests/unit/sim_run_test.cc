// Schedules in simulated time, on clusters so small that a hand can reckon what must come out.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "schedule/builder.h"
#include "sim/event_queue.h"
#include "sim/simulate.h"

namespace tutti::sim {
namespace {

using schedule::Algorithm;
using schedule::Operand;
using schedule::Schedule;

constexpr size_t kSimSlot = 64 << 10;

// 1 GB/s is a byte a nanosecond: 64 KiB take 65.536 us.
constexpr double kSlotUs = 65.536;

Cluster simpleCluster(int hosts, int ranksPerHost) {
  Cluster cluster;
  cluster.name = "test";
  cluster.hosts = hosts;
  cluster.ranksPerHost = ranksPerHost;
  cluster.combineGBs = 1e9;  // as good as none
  return cluster;
}

// Rank `from` sends the whole message to rank `to`; the others have no steps.
std::vector<Schedule> flows(int size, std::initializer_list<std::pair<int, int>> pairs) {
  std::vector<Schedule> all;
  for (int rank = 0; rank < size; ++rank) {
    schedule::Shape shape;
    shape.collective = Collective::kBroadcast;
    shape.size = size;
    schedule::Builder builder(shape, rank, schedule::SegmentMap::kSplit, 1);
    for (const auto& [from, to] : pairs) {
      if (from == rank) builder.at(0).from(Operand::input()).toRank(to);
      if (to == rank) builder.at(0).fromRank(from).to(Operand::output());
    }
    all.push_back(builder.finish(1));
  }
  return all;
}

double usOf(const Cluster& cluster, std::initializer_list<std::pair<int, int>> pairs, size_t bytes) {
  return simulate(flows(cluster.ranks(), pairs), cluster, {Collective::kBroadcast, bytes}).us;
}

TEST(SimRun, OneSlotTakesItsBytesAndTheLatency) {
  Cluster cluster = simpleCluster(2, 1);
  cluster.remoteUs = 7;
  EXPECT_DOUBLE_EQ(usOf(cluster, {{0, 1}}, kSimSlot), kSlotUs + 7);
  cluster.nics = {{"NIC 0", 2}};
  EXPECT_DOUBLE_EQ(usOf(cluster, {{0, 1}}, kSimSlot), kSlotUs / 2 + 7);
}

TEST(SimRun, WithinAHostPortsCount) {
  Cluster cluster = simpleCluster(1, 2);
  cluster.portGBs = 4;
  cluster.localUs = 1;
  EXPECT_DOUBLE_EQ(usOf(cluster, {{0, 1}}, kSimSlot), kSlotUs / 4 + 1);
}

TEST(SimRun, SlotsOfAFlowFollowEachOtherAndTheLatencyIsPaidOnce) {
  Cluster cluster = simpleCluster(2, 1);
  cluster.remoteUs = 7;
  EXPECT_DOUBLE_EQ(usOf(cluster, {{0, 1}}, 5 * kSimSlot), 5 * kSlotUs + 7);
}

// One slot of room: the next may leave when the sender knows that the last was taken, a latency after it was.
TEST(SimRun, AFifoOfOneWaitsForRoom) {
  Cluster cluster = simpleCluster(2, 1);
  cluster.remoteUs = 7;
  cluster.depth = 1;
  EXPECT_DOUBLE_EQ(usOf(cluster, {{0, 1}}, 3 * kSimSlot), 3 * (kSlotUs + 7) + 2 * 7);
}

TEST(SimRun, TwoFlowsThroughOneNicTakeTwiceAsLong) {
  const Cluster cluster = simpleCluster(2, 2);  // whose two ranks share a NIC
  const double alone = usOf(cluster, {{0, 2}}, 8 * kSimSlot);
  EXPECT_DOUBLE_EQ(usOf(cluster, {{0, 2}, {1, 3}}, 8 * kSimSlot), 2 * alone);
  Cluster ofTwo = cluster;
  ofTwo.nics = {{"NIC 0"}, {"NIC 1"}};
  EXPECT_DOUBLE_EQ(usOf(ofTwo, {{0, 2}, {1, 3}}, 8 * kSimSlot), alone);
}

// As in engine/lane.cc: round r of a lagging step comes lag iterations later, behind the steps that feed rounds which
// come after r. Here the sender does not wait for what it is sent before it goes on, and only bandwidth counts.
TEST(SimRun, AStepThatLagsTakesAnEarlierRound) {
  for (const int lag : {0, 1, 3}) {
    std::vector<Schedule> all;
    for (int rank = 0; rank < 2; ++rank) {
      schedule::Shape shape;
      shape.size = 2;
      schedule::Builder builder(shape, rank, schedule::SegmentMap::kSplit, 1);
      builder.at(0).from(Operand::input()).toRank(1 - rank);
      builder.at(0).fromRank(1 - rank).to(Operand::output()).lag(lag);
      all.push_back(builder.finish(4));
    }
    Cluster cluster = simpleCluster(2, 1);
    cluster.remoteUs = 7;
    const double us = simulate(all, cluster, {Collective::kAllReduce, 5 * kSimSlot + kSimSlot / 2}).us;
    EXPECT_DOUBLE_EQ(us, lag == 0 ? 5.5 * kSlotUs + 6 * 7 : 5.5 * kSlotUs + 7) << lag;
  }
}

// Each of two ranks sends half to the other and adds up what came: twice half a message, and the addition once.
TEST(SimRun, RingOfTwo) {
  Cluster cluster = simpleCluster(2, 1);
  cluster.remoteUs = 7;
  const Message message{Collective::kAllReduce, 2 * kSimSlot};
  EXPECT_DOUBLE_EQ(simulate(Algorithm::kRing, cluster, message).us, 2 * (kSlotUs + 7));
  cluster.combineGBs = 2;
  EXPECT_DOUBLE_EQ(simulate(Algorithm::kRing, cluster, message).us, 2 * (kSlotUs + 7) + kSlotUs / 2);
}

TEST(SimRun, RingOfFour) {
  Cluster cluster = simpleCluster(4, 1);
  cluster.remoteUs = 7;
  const Result result = simulate(Algorithm::kRing, cluster, {Collective::kAllReduce, 4 * kSimSlot});
  EXPECT_DOUBLE_EQ(result.us, 6 * (kSlotUs + 7));
  EXPECT_DOUBLE_EQ(result.busGBs, 4 * kSimSlot / (6 * (kSlotUs + 7) * 1e3) * 1.5);
}

TEST(SimRun, ARingSendsItsFormulaThroughEveryNic) {
  for (const int hosts : {2, 3, 8}) {
    const Cluster cluster = simpleCluster(hosts, 1);
    const size_t bytes = 16 * kSimSlot * static_cast<size_t>(hosts);
    const Result result = simulate(Algorithm::kRing, cluster, {Collective::kAllReduce, bytes});
    const size_t each = 2 * (static_cast<size_t>(hosts) - 1) * bytes / static_cast<size_t>(hosts);
    ASSERT_EQ(result.bytes.size(), 4u * static_cast<size_t>(hosts));
    for (size_t resource = 0; resource < result.bytes.size(); ++resource)
      EXPECT_EQ(result.bytes[resource], resource % 4 < 2 ? 0 : each) << resource;  // ports, then the NIC
  }
}

// Rank 0 waits for a slot that rank 1 would send after one that it waits for itself.
TEST(SimRun, ADeadlockIsAnError) {
  std::vector<Schedule> all;
  for (int rank = 0; rank < 2; ++rank) {
    schedule::Shape shape;
    shape.size = 2;
    schedule::Builder builder(shape, rank, schedule::SegmentMap::kSplit, 1);
    builder.at(0).fromRank(1 - rank).to(Operand::output());
    builder.at(0).from(Operand::input()).toRank(1 - rank);
    all.push_back(builder.finish(1));
  }
  try {
    simulate(all, simpleCluster(2, 1), {Collective::kAllReduce, kSimSlot});
    FAIL() << "it ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(),
                 "the schedules deadlock at depth 8: rank 0 waits for ever for a slot from rank 1, in step 0 of "
                 "iteration 0");
  }
}

TEST(SimRun, ARunThatTakesTooLongIsAnError) {
  Ways ways;
  for (const uint64_t events : {100, 113}) {  // there are 112 steps, and a little more to do
    ways.mostEvents = events;
    EXPECT_THROW(simulate(Algorithm::kRing, simpleCluster(8, 1), {Collective::kAllReduce, kSimSlot}, ways), Error);
  }
}

TEST(SimQueue, GivesEventsByTimeAndThoseOfOneTimeAsTheyCame) {
  struct Event {
    uint64_t time;
    int number;
  };
  EventQueue<Event> queue;
  uint64_t now = 0, seed = 1;
  int made = 0;
  std::vector<Event> waiting;
  const auto push = [&] {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const Event event{now + (seed >> 33) % 50, made++};
    queue.push(event);
    waiting.push_back(event);
  };
  for (int i = 0; i < 100; ++i) push();
  for (int i = 0; i < 5000; ++i) {
    const auto next = std::ranges::min_element(waiting, {}, [](const Event& e) { return std::pair(e.time, e.number); });
    const Event event = queue.pop();
    ASSERT_EQ(event.time, next->time);
    ASSERT_EQ(event.number, next->number);
    waiting.erase(next);
    now = event.time;
    push();
  }
  EXPECT_FALSE(queue.empty());
}

}  // namespace
}  // namespace tutti::sim

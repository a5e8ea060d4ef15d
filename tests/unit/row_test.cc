// The order of ranks in rings and trees, where launchers deal ranks to hosts one by one.
#include "schedule/row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "unit/every_schedule.h"

namespace tutti::schedule {
namespace {

// Links from a host to another.
int crossings(const std::vector<Schedule>& schedules, const std::vector<int>& hostOf) {
  int count = 0;
  for (const Schedule& schedule : schedules)
    for (const int peer : schedule.outPeers)
      if (hostOf[schedule.rank] != hostOf[peer]) ++count;
  return count;
}

// As `mpirun --map-by node` places them: rank 0 on host 0, 1 on 1, …
std::vector<int> dealt(int size, int hosts) {
  std::vector<int> hostOf;
  for (int rank = 0; rank < size; ++rank) hostOf.push_back(rank % hosts);
  return hostOf;
}

std::vector<int> inBlocks(int size, int hosts) {
  std::vector<int> hostOf = dealt(size, hosts);
  std::ranges::sort(hostOf);
  return hostOf;
}

std::vector<Schedule> built(Algorithm algorithm, Collective collective, const std::vector<int>& groupOf, int root = 0) {
  Shape shape;
  shape.collective = collective;
  shape.size = static_cast<int>(groupOf.size());
  shape.root = root;
  shape.groupOf = groupOf;
  return test::buildAll(algorithm, shape);
}

TEST(Row, PutsTheRanksOfAHostNextToEachOther) {
  const Row row(dealt(6, 2));
  std::vector<int> ranks;
  for (int place = 0; place < 6; ++place) ranks.push_back(row.rankAt(place));
  EXPECT_EQ(ranks, (std::vector<int>{0, 2, 4, 1, 3, 5}));
  for (int rank = 0; rank < 6; ++rank) EXPECT_EQ(row.rankAt(row.placeOf(rank)), rank);
  EXPECT_NE(row.digest(), 0);
}

TEST(Row, KeepsTheOrderWhereTheyAreNextToEachOther) {
  for (const std::vector<int>& groupOf : {std::vector<int>{}, {7, 7, 3, 3, 9}, {0, 0, 0, 0, 0}}) {
    const Row row(groupOf);
    for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(row.rankAt(rank), rank);
    EXPECT_EQ(row.digest(), 0);
  }
}

TEST(Row, TakesAnOrderWithinTheHosts) {
  const std::vector<int> within{4, 0, 2, 9, 3, 1};
  const Row row(dealt(6, 2), within);
  std::vector<int> ranks;
  for (int place = 0; place < 6; ++place) ranks.push_back(row.rankAt(place));
  EXPECT_EQ(ranks, (std::vector<int>{2, 4, 0, 1, 5, 3}));  // the host of rank 0 stays the first
  for (int rank = 0; rank < 6; ++rank) EXPECT_EQ(row.rankAt(row.placeOf(rank)), rank);
  EXPECT_NE(row.digest(), Row(dealt(6, 2)).digest());
  const Row alone({}, std::vector<int>{2, 1, 0, 0});
  EXPECT_EQ(alone.rankAt(0), 2);
  EXPECT_EQ(alone.rankAt(1), 3);  // of equals the lesser number
  EXPECT_NE(alone.digest(), 0);
}

TEST(Row, AnOrderThatIsTheNumbersIsNone) {
  for (const std::vector<int>& within : {std::vector<int>{0, 0, 0, 0, 0}, {1, 2, 3, 7, 7}}) {
    const Row row({}, within);
    for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(row.placeOf(rank), rank);
    EXPECT_EQ(row.digest(), 0);
  }
}

TEST(Row, NeighboursInARingAreThoseOfTheOrder) {
  Shape shape;
  shape.size = 4;
  shape.within = {0, 2, 1, 3};
  for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kBroadcast}) {
    shape.collective = collective;
    const auto ring = test::buildAll(Algorithm::kRing, shape);
    EXPECT_EQ(ring[0].outPeers, (std::vector<int>{2})) << nameOf(collective);
    EXPECT_EQ(ring[2].outPeers, (std::vector<int>{1})) << nameOf(collective);
    EXPECT_EQ(ring[0].grouping, Row({}, shape.within).digest());
  }
  shape.within = {0, 1};
  EXPECT_THROW(build(Algorithm::kRing, shape, 0), Error);
}

// Ranks behind one another from the root on, itself included; and how many it hands on to.
std::pair<int, size_t> longestFrom(const std::vector<Schedule>& schedules, int root) {
  const auto& peers = schedules[size_t(root)].outPeers;
  int longest = 0;
  for (const int peer : peers) longest = std::max(longest, longestFrom(schedules, peer).first);
  return {1 + longest, peers.size()};
}

TEST(Row, AChainBothWaysIsHalfAsLong) {
  for (int size = 2; size <= 9; ++size) {
    Shape shape;
    shape.size = size;
    shape.collective = Collective::kBroadcast;
    for (shape.root = 0; shape.root < size; ++shape.root) {
      shape.bothWays = false;
      const auto one = test::buildAll(Algorithm::kRing, shape);
      EXPECT_EQ(longestFrom(one, shape.root), (std::pair(size, size_t{1})));
      shape.bothWays = true;
      const auto both = test::buildAll(Algorithm::kRing, shape);
      EXPECT_EQ(longestFrom(both, shape.root), (std::pair(1 + size / 2, size_t(std::min(2, size - 1))))) << size;
      EXPECT_NE(one[0].grouping, both[0].grouping);
    }
  }
}

TEST(Row, ARingEntersAndLeavesEachHostOnce) {
  for (const int hosts : {2, 3, 4, 7}) {
    const auto groupOf = dealt(28, hosts);
    for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter})
      EXPECT_EQ(crossings(built(Algorithm::kRing, collective, groupOf), groupOf), hosts) << nameOf(collective);
    for (const int root : {0, 1, 27})
      EXPECT_LE(crossings(built(Algorithm::kRing, Collective::kBroadcast, groupOf, root), groupOf), hosts);
  }
}

TEST(Row, TreesCrossAsRarelyAsWhereRanksComeHostByHost) {
  for (const int hosts : {2, 4, 8})
    for (const Collective collective : {Collective::kAllReduce, Collective::kBroadcast, Collective::kReduce}) {
      const auto dealtOut = dealt(32, hosts), blocks = inBlocks(32, hosts);
      EXPECT_EQ(crossings(built(Algorithm::kTree, collective, dealtOut), dealtOut),
                crossings(built(Algorithm::kTree, collective, blocks), blocks))
          << nameOf(collective) << " over " << hosts;
    }
}

TEST(Row, AllRanksHaveTheSameDigest) {
  const auto groupOf = dealt(12, 3);
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    std::set<int> digests;
    for (const Schedule& schedule : built(algorithm, Collective::kAllReduce, groupOf))
      digests.insert(schedule.grouping);
    EXPECT_EQ(digests.size(), 1u);
    EXPECT_EQ(digests.count(0), 0u);
  }
}

}  // namespace
}  // namespace tutti::schedule

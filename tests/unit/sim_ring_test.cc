// A ring that is reckoned takes to the picosecond what its events take.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/simulate.h"
#include "tests/unit/sim_clusters.h"

namespace tutti::sim {
namespace {

using schedule::Algorithm;

constexpr Ways kEvents{.fold = Shortcut::kNever, .ringForm = Shortcut::kNever, .extrapolate = Shortcut::kNever};
constexpr Ways kReckoned{.fold = Shortcut::kAlways, .ringForm = Shortcut::kAlways};
constexpr Collective kOfRings[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter};

// A message whose segments are all of so many lines.
Message evenMessage(const Cluster& cluster, Collective collective, size_t lines) {
  return {collective, static_cast<size_t>(cluster.ranks()) * lines * 64};
}

void expectTheSame(const Cluster& cluster, const Message& message) {
  SCOPED_TRACE(::testing::Message() << nameOf(message.collective) << " of " << message.bytes << " bytes, "
                                    << cluster.hosts << " x " << cluster.ranksPerHost << " ranks of " << cluster.name
                                    << ", channels: " << cluster.channels << ", depth " << cluster.depth);
  const Result events = simulate(Algorithm::kRing, cluster, message, kEvents);
  const Result reckoned = simulate(Algorithm::kRing, cluster, message, kReckoned);
  EXPECT_TRUE(reckoned.form);
  EXPECT_FALSE(reckoned.evened);
  EXPECT_EQ(reckoned.us, events.us);
  EXPECT_EQ(reckoned.firstUs, events.firstUs);
  EXPECT_EQ(reckoned.busiestShare, events.busiestShare);
  const size_t ofHost = events.bytes.size() / static_cast<size_t>(cluster.hosts);
  EXPECT_TRUE(
      std::equal(events.bytes.begin(), events.bytes.begin() + static_cast<ptrdiff_t>(ofHost), reckoned.bytes.begin()));
}

bool isReckoned(const Cluster& cluster, const Message& message) {
  return simulate(Algorithm::kRing, cluster, message, {.fold = Shortcut::kAlways}).form;
}

TEST(SimRing, TakesWhatItsEventsTakeOnKnownSystems) {
  for (const char* system : {"hgx-h100", "dgx-a100", "aws-p4d", "pcie-box", "ethernet-host"})
    for (const int hosts : {1, 2, 5})
      for (const size_t lines : {1, 100, 20'000})
        for (const Collective collective : kOfRings) {
          const Cluster cluster = knownCluster(system, hosts);
          expectTheSame(cluster, evenMessage(cluster, collective, lines));
        }
}

// With hosts of one rank to more than a link has slots, of the fewest slots on. Where slots of several channels would
// overtake each other it is run, and has nothing to be compared with.
TEST(SimRing, TakesWhatItsEventsTakeOnOtherClusters) {
  int compared = 0;
  for (const int ranksPerHost : {1, 3, 12})
    for (const uint32_t depth : {2, 3, 8})
      for (const int channels : {1, 2, 5})
        for (const double nicGBs : {0.5, 3.0, 20.0})
          for (const size_t lines : {1, 12'345}) {
            Cluster cluster = knownCluster("ethernet-host", 3, ranksPerHost);
            cluster.depth = depth;
            cluster.channels = channels;
            cluster.nics[0].gbs = nicGBs;
            const Message message = evenMessage(cluster, Collective::kAllReduce, lines);
            if (channels > 1 && !isReckoned(cluster, message)) continue;
            expectTheSame(cluster, message);
            ++compared;
          }
  EXPECT_GT(compared, 120);  // of 162
}

TEST(SimRing, SkipsPeriodsOfLongRings) {
  for (const int ranksPerHost : {1, 4}) {
    const Cluster cluster = knownCluster("ethernet-host", 64 / ranksPerHost, ranksPerHost);
    expectTheSame(cluster, evenMessage(cluster, Collective::kAllReduce, 40'960));
  }
}

// The formula of ring_form.h.
TEST(SimRing, FollowsTheFormulaWhereLinksAreAlike) {
  for (const int ranks : {2, 7, 64, 1000, 65'536})
    for (const int channels : {1, 2, 4})
      for (const double gbs : {1.0, 10.0}) {
        Cluster cluster = knownCluster("ethernet-host", ranks, 1);
        cluster.channels = channels;
        cluster.nics[0].gbs = gbs;
        const int rounds = 3;
        const size_t slot = cluster.slotBytes;
        const double s = double(slot) / gbs / 1e3, l = cluster.remoteUs,
                     a = double(slot) * channels / cluster.combineGBs / 1e3;
        const double added = std::max(channels * s, s + l + a), passed = std::max(channels * s, s + l);
        const Message message{Collective::kAllReduce, slot * rounds * static_cast<size_t>(channels * ranks)};
        const Result result = simulate(Algorithm::kRing, cluster, message, kReckoned);
        const double expected = rounds * (ranks - 1) * (added + passed) - passed + channels * s + l;
        EXPECT_NEAR(result.us / expected, 1, 1e-6) << ranks << " ranks, channels: " << channels << ", " << gbs;
      }
}

// Where the last segments are shorter, all count as if they were as long.
TEST(SimRing, IsAboutRightWhereSegmentsAreUneven) {
  for (const int hosts : {2, 8}) {
    const Cluster cluster = knownCluster("hgx-h100", hosts);
    for (const size_t bytes : {size_t{1000}, size_t{100'000}, size_t{40'000'000}}) {
      const Message message{Collective::kAllReduce, bytes};
      const Result reckoned = simulate(Algorithm::kRing, cluster, message, kReckoned);
      EXPECT_TRUE(reckoned.evened);
      EXPECT_NEAR(reckoned.us / simulate(Algorithm::kRing, cluster, message, kEvents).us, 1, 0.01) << bytes;
    }
  }
}

// Adding up takes so long that a message which is only handed on would overtake those of other channels.
TEST(SimRing, IsRunWhereSlotsWouldOvertakeEachOther) {
  Cluster cluster = knownCluster("ethernet-host", 100, 1);
  cluster.channels = 8;
  cluster.combineGBs = 1;
  cluster.nics[0].gbs = 10;
  const Message message = evenMessage(cluster, Collective::kAllReduce, 8 * 1024);
  const Result result = simulate(Algorithm::kRing, cluster, message);
  EXPECT_TRUE(result.folded);
  EXPECT_FALSE(result.form);
}

}  // namespace
}  // namespace tutti::sim

// Measured times: how they correct what the model predicts, and what a profile may say of them.
#include "plan/measured.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/cost.h"
#include "plan/expected.h"
#include "plan/profile_file.h"

namespace tutti::plan {
namespace {

using schedule::Algorithm;

ClusterModel machineOf(int ranks, double ranksPerCore = 1) {
  ClusterModel machine;
  machine.ranks = machine.ranksPerHost = ranks;
  machine.ranksPerCore = ranksPerCore;
  machine.localOver = "shm";
  return machine;
}

double predicted(Algorithm algorithm, size_t bytes, const ClusterModel& machine) {
  return predictUs(algorithm, {Collective::kAllReduce, bytes}, machine);
}

double expected(Algorithm algorithm, size_t bytes, const ClusterModel& machine) {
  return expectedUs(algorithm, {Collective::kAllReduce, bytes}, machine);
}

// An all-reduce that took `first` times what is predicted at 1 KiB, and `second` times at 64 KiB.
Series seriesOf(Algorithm algorithm, double first, double second, int ranks = 4) {
  const ClusterModel machine = machineOf(ranks);
  const auto us = [&](double factor, size_t bytes) { return factor * predicted(algorithm, bytes, machine); };
  return {Collective::kAllReduce,
          algorithm,
          "shm",
          ranks,
          1,
          {1 << 10, 64 << 10},
          {us(first, 1 << 10), us(second, 64 << 10)}};
}

ClusterModel withSeries(ClusterModel machine, std::vector<Series> series) {
  machine.prices.measured = Measurements(std::move(series));
  return machine;
}

TEST(Measured, ATimeThatWasMeasuredIsWhatIsExpected) {
  const Series series = seriesOf(Algorithm::kRing, 3, 0.5);
  const ClusterModel machine = withSeries(machineOf(4), {series});
  EXPECT_NEAR(expected(Algorithm::kRing, 1 << 10, machine), series.us[0], 1e-9);
  EXPECT_NEAR(expected(Algorithm::kRing, 64 << 10, machine), series.us[1], 1e-9);
}

TEST(Measured, BetweenAndBeyondSizesTheFactorCounts) {
  const ClusterModel machine = withSeries(machineOf(4), {seriesOf(Algorithm::kRing, 3, 1)});
  const auto factor = [&](size_t bytes) {
    return expected(Algorithm::kRing, bytes, machine) / predicted(Algorithm::kRing, bytes, machine);
  };
  EXPECT_NEAR(factor(8 << 10), 2, 1e-9);  // half way: 3 doublings of 6
  EXPECT_NEAR(factor(1), 3, 1e-9);
  EXPECT_NEAR(factor(0), 3, 1e-9);
  EXPECT_NEAR(factor(1 << 30), 1, 1e-9);
  for (size_t bytes = 1 << 10; bytes < 64 << 10; bytes += 1000) EXPECT_LE(factor(bytes + 1000), factor(bytes) + 1e-9);
}

TEST(Measured, AmongCoresTheStageWithinStandsForBoth) {
  ClusterModel machine = withSeries(machineOf(8), {seriesOf(Algorithm::kTwoShot, 3, 3, 8)});
  const auto factor = [&] {
    constexpr auto kWhich = Algorithm::kHierarchical;
    return expected(kWhich, 4 << 10, machine) / predicted(kWhich, 4 << 10, machine);
  };
  EXPECT_NEAR(factor(), 1, 1e-9) << "there are no stages";
  machine.cores = 2;
  EXPECT_NEAR(factor(), 3, 1e-9);
}

TEST(Measured, TheChoiceGoesByIt) {
  const ClusterModel plain = machineOf(4);
  const Request request{Collective::kAllReduce, 1 << 10};
  const Algorithm usual = choose(request, plain, {}, 0).best.algorithm;
  const ClusterModel machine = withSeries(plain, {seriesOf(usual, 100, 100)});
  EXPECT_NE(choose(request, machine, {}, 0).best.algorithm, usual);
}

TEST(Measured, ThePlaceThatIsMostAlikeCounts) {
  const Measurements all({seriesOf(Algorithm::kRing, 2, 2, 4), seriesOf(Algorithm::kRing, 5, 5, 16)});
  const auto ranksOf = [&](int ranks, double ranksPerCore = 1, std::string_view transport = "shm") {
    const Series* found = all.nearest(Collective::kAllReduce, Algorithm::kRing, {transport, ranks, ranksPerCore});
    return found == nullptr ? 0 : found->ranks;
  };
  EXPECT_EQ(ranksOf(4), 4);
  EXPECT_EQ(ranksOf(7), 4);
  EXPECT_EQ(ranksOf(9), 16);
  EXPECT_EQ(ranksOf(64), 16);
  EXPECT_EQ(ranksOf(65), 0);
  EXPECT_EQ(ranksOf(16, 4.5), 0);
  EXPECT_EQ(ranksOf(4, 1, "tcp"), 0);
  EXPECT_EQ(all.nearest(Collective::kBroadcast, Algorithm::kRing, {"shm", 4, 1}), nullptr);
}

TEST(Measured, OtherPlacesAndSeveralHostsGoByTheModel) {
  ClusterModel machine = withSeries(machineOf(4), {seriesOf(Algorithm::kRing, 3, 3)});
  machine.localOver = "p2p";
  EXPECT_EQ(expected(Algorithm::kRing, 1 << 10, machine), predicted(Algorithm::kRing, 1 << 10, machine));
  machine.localOver = "shm", machine.hosts = 2;
  EXPECT_EQ(expected(Algorithm::kRing, 1 << 10, machine), predicted(Algorithm::kRing, 1 << 10, machine));
}

TEST(Measured, ComesBackFromItsTextAndCountsInTheDigest) {
  Profile profile;
  profile.measured = Measurements(
      {seriesOf(Algorithm::kRing, 3, 1), seriesOf(Algorithm::kTree, 0.1, 7), seriesOf(Algorithm::kRing, 2, 2, 8)});
  const Profile back = profileFromText(profileText(profile, "a machine of tests"), "some.json");
  EXPECT_EQ(back.measured.series().size(), 3u);
  EXPECT_EQ(digestOf(back), digestOf(profile));
  Profile other = profile;
  other.measured = Measurements({seriesOf(Algorithm::kRing, 3, 1)});
  EXPECT_NE(digestOf(other), digestOf(profile));
  EXPECT_NE(digestOf(other), "shipped");
}

std::string refusal(const std::string& measured) {
  try {
    profileFromText(R"({"tutti_profile": 1, "prices": {}, "measured": )" + measured + "}", "some.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "nothing";
}

std::string group(const std::string& operation, const std::string& ranks, const std::string& bytes,
                  const std::string& us) {
  return fmt::format(
      R"([{{"operation": "{}", "transport": "shm", "ranks": {}, "ranks_per_core": 1, "bytes": {}, "us": {}}}])",
      operation, ranks, bytes, us);
}

TEST(Measured, WhatNoMachineMeasuresIsRefusedInWords) {
  EXPECT_EQ(refusal(group("all_reduce", "2", "[8, 64]", R"({"ring": [1, 2.5]})")), "nothing");
  EXPECT_NE(refusal("{}").find("some.json: \"measured\" is to be a list"), std::string::npos);
  EXPECT_NE(refusal("[1]").find("some.json: number 0 of \"measured\""), std::string::npos);
  EXPECT_NE(refusal(group("sum", "2", "[8]", "{}")).find("no operation called 'sum'"), std::string::npos);
  for (const char* ranks : {"1", "0", "-3", "1e9", "1e300", "\"two\"", "null"})
    EXPECT_NE(refusal(group("reduce", ranks, "[8]", "{}")), "nothing") << ranks;
  for (const char* bytes : {"[]", "[8, 8]", "[64, 8]", "[0]", "[-1, 4]", "8", "[\"a\"]", "[1e300]"})
    EXPECT_NE(refusal(group("reduce", "2", bytes, "{}")), "nothing") << bytes;
  for (const char* us : {R"({"ring": [1, 2]})", R"({"ring": []})", R"({"ring": [0]})", R"({"ring": [-1]})",
                         R"({"ring": [null]})", R"({"spiral": [1]})", "[]", "3"})
    EXPECT_NE(refusal(group("reduce", "2", "[8]", us)), "nothing") << us;
}

}  // namespace
}  // namespace tutti::plan

// Prices found from the times of a machine that has just these, and what judges choices.
#include "tune/fit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "base/error.h"
#include "plan/profile.h"
#include "tune/series.h"
#include "tune/table.h"

namespace tutti::tune {
namespace {

// All that is measured, as a machine with these prices would have it.
Sweep sweepOf(const plan::Profile& prices) {
  Sweep sweep{"a machine of tests", 4, {}};
  for (const Collective collective : tunable())
    for (const char* transport : {"p2p", "shm", "tcp"})
      for (const int ranks : {2, 4, 8})
        for (size_t bytes = 8; bytes <= 16 << 20; bytes *= 8)
          sweep.cells.push_back({collective, transport, ranks, bytes, {}});
  Model model(sweep);
  model.price(prices);
  for (Cell& cell : sweep.cells)
    for (const schedule::Algorithm algorithm : alternatives(cell.collective))
      if (const double us = model.predictedUs(cell, algorithm); us > 0) cell.times[algorithm] = {us};
  return sweep;
}

TEST(Tune, AMachineWithTheShippedPricesNeedsNoOthers) {
  const Sweep sweep = sweepOf({});
  Model model(sweep);
  const Score score = scoreOf(sweep, model, {});
  EXPECT_EQ(score.regret, 0);
  EXPECT_EQ(score.error, 0);
  EXPECT_EQ(score.nearBest, 1);
  EXPECT_EQ(fitted(sweep), plan::Profile());
}

TEST(Tune, ChoosesWellOnAMachineWithOtherPrices) {
  plan::Profile prices;
  prices.p2p = {1.9, 40}, prices.shm = {1.9, 40}, prices.tcpLoopback = {60, 0.5}, prices.turnUs = 20;
  prices.copyGBs = 4, prices.combineGBs = 2;
  const Sweep sweep = sweepOf(prices);
  Model model(sweep);
  const Score shipped = scoreOf(sweep, model, {});
  const Score tuned = scoreOf(sweep, model, fitted(sweep));
  EXPECT_GT(tuned.nearBest, shipped.nearBest);
  EXPECT_LT(tuned.regret, shipped.regret / 3);
  EXPECT_LT(tuned.error, shipped.error / 3);
}

// Times that no price explains: what was measured counts.
TEST(Tune, WhatWasMeasuredIsChosenWhateverThePricesSay) {
  Sweep sweep = sweepOf({});
  uint64_t state = 1;
  for (Cell& cell : sweep.cells)
    for (auto& [algorithm, rounds] : cell.times)
      rounds.front() *= 1 + double((state = state * 6364136223846793005 + 1442695040888963407) >> 60);
  plan::Profile profile;
  Model model(sweep);
  EXPECT_LT(scoreOf(sweep, model, profile).nearBest, 0.7);
  model.price(profile);
  profile.measured = measurementsOf(sweep, model);
  const Score score = scoreOf(sweep, model, profile);
  EXPECT_EQ(score.nearBest, 1);
  EXPECT_LT(score.error, 0.01);
}

TEST(Tune, ASweepOfMoreBytesThanThereAreIsRefused) {
  const std::string path = testing::TempDir() + "tutti-sweep-" + std::to_string(::getpid());
  const auto reads = [&](size_t bytes) {
    Sweep sweep = sweepOf(plan::Profile());
    sweep.cells.resize(1);
    sweep.cells[0].bytes = bytes;
    std::ofstream(path) << toJson(sweep);
    try {
      return readSweep(path).cells.size() == 1;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("bytes"), std::string::npos) << error.what();
      return false;
    }
  };
  EXPECT_TRUE(reads(size_t{1} << 40));
  EXPECT_FALSE(reads(size_t{1} << 62));  // times four ranks it would be none
  std::remove(path.c_str());
}

TEST(Tune, TheMedianOfTheRoundsCounts) {
  Cell cell;
  cell.times[schedule::Algorithm::kRing] = {9, 1, 2};
  cell.times[schedule::Algorithm::kTree] = {3, 3, 3};
  EXPECT_EQ(cell.us(schedule::Algorithm::kRing), 2);
  EXPECT_EQ(cell.fastest(), schedule::Algorithm::kRing);
}

TEST(Tune, ShowsChoicesThatAreOffAndCountsTheOthers) {
  Sweep sweep = sweepOf({});
  const std::string good = tableOf(sweep, {}, false);
  EXPECT_EQ(good.find("chosen"), std::string::npos) << good;
  EXPECT_NE(good.find("100.0 % of the choices"), std::string::npos) << good;
  Cell& cell = sweep.cells.front();
  cell.times.at(cell.fastest()).front() *= 100;
  const std::string bad = tableOf(sweep, {}, false);
  EXPECT_NE(bad.find("\nall_reduce      p2p        2          8  oneshot "), std::string::npos) << bad;
}

}  // namespace
}  // namespace tutti::tune

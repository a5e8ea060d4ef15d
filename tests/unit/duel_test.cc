// Verdicts about times that are made up: how often they are right is counted, over noise that is always the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "base/error.h"
#include "tune/amend.h"
#include "tune/duel.h"
#include "tune/fit.h"
#include "tune/match.h"

namespace tutti::tune {
namespace {

using schedule::Algorithm;

Cell cellOf(std::map<Algorithm, std::vector<double>> times) {
  return {Collective::kAllReduce, "shm", 4, 32768, std::move(times)};
}

// Microseconds of a call of each algorithm, whose turn it is being `turn`.
using Truth = std::function<double(Algorithm who, size_t turn)>;

Match played(const Cell& cell, Algorithm choice, const Truth& truth, double seconds = 1e9) {
  Match match(cell, choice, seconds);
  for (size_t turn = 0; !match.over();) {
    std::vector<double> us;
    for (const size_t player : match.order())
      us.push_back(truth(player == 0 ? choice : match.bouts()[player - 1].contender, turn++));
    match.add(us);
  }
  return match;
}

const Cell kPair = cellOf({{Algorithm::kRing, {10}}, {Algorithm::kTree, {10}}});

// Of the choice, ring, against tree: the share of each verdict among many matches, where ring takes `ratio` times as
// long and times have a logarithm that scatters by `noise`.
struct Shares {
  double within = 0, missed = 0, open = 0;
};
Shares sharesAt(double ratio, double noise) {
  constexpr int kMatches = 400;
  std::mt19937 random(1);
  std::normal_distribution<double> scatter(0, noise);
  Shares shares;
  for (int i = 0; i < kMatches; ++i) {
    const Match match = played(kPair, Algorithm::kRing, [&](Algorithm who, size_t) {
      return (who == Algorithm::kRing ? ratio : 1) * std::exp(scatter(random));
    });
    const Verdict verdict = outcomeOf(kPair, match).verdict();
    (verdict == Verdict::kWithin   ? shares.within
     : verdict == Verdict::kMissed ? shares.missed
                                   : shares.open) += 1.0 / kMatches;
  }
  return shares;
}

TEST(Duel, TheMedianLiesBetweenOrderStatistics) {
  std::vector<double> ratios;
  for (int i = 1; i <= 60; ++i) ratios.push_back(i);
  const Interval sixty = medianOf(ratios);
  // P(at most 18 heads of 60) = 0.0013, of at most 19: 0.0031, of at most 20: 0.0067.
  EXPECT_EQ(sixty.low, 20);
  EXPECT_EQ(sixty.high, 41);
  EXPECT_EQ(sixty.median, 30.5);
  const Interval ten = medianOf(std::span(ratios).first(10));
  EXPECT_EQ(ten.low, 1);
  EXPECT_EQ(ten.high, 10);
  const Interval seven = medianOf(std::span(ratios).first(7));
  EXPECT_EQ(seven.low, 0);
  EXPECT_TRUE(std::isinf(seven.high));
  EXPECT_EQ(seven.median, 4);
}

TEST(Duel, FindsWhatIsClear) {
  EXPECT_GT(sharesAt(1.0, 0.05).within, 0.99);
  EXPECT_GT(sharesAt(1.2, 0.05).missed, 0.99);
  EXPECT_GT(sharesAt(1.05, 0.02).within, 0.99);
}

TEST(Duel, IsSeldomWrongOnEitherSide) {
  for (const double noise : {0.02, 0.1, 0.5}) {
    EXPECT_LT(sharesAt(1.101, noise).within, 0.04) << noise;
    EXPECT_LT(sharesAt(1.099, noise).missed, 0.04) << noise;
  }
}

TEST(Duel, FavoursNobodyAtTheLimit) {
  const Shares shares = sharesAt(kNear, 0.1);
  EXPECT_NEAR(shares.within, shares.missed, 0.03);
  EXPECT_GT(shares.open, 0.93);
}

// Every seventh turn takes ten times as long: 1 in 2 or 3 rounds has one.
TEST(Duel, DisturbancesOfFewRoundsDecideNothing) {
  const auto disturbed = [](double ratio) {
    return [ratio](Algorithm who, size_t turn) {
      return (who == Algorithm::kRing ? ratio : 1) * (turn % 7 == 0 ? 10 : 1);
    };
  };
  EXPECT_EQ(outcomeOf(kPair, played(kPair, Algorithm::kRing, disturbed(1.0))).verdict(), Verdict::kWithin);
  EXPECT_EQ(outcomeOf(kPair, played(kPair, Algorithm::kRing, disturbed(1.3))).verdict(), Verdict::kMissed);
}

// A machine that slows down with each turn, or speeds up: who comes later would lose, or win, every round.
TEST(Duel, DriftIsForAllAlike) {
  for (const double drift : {1.05, 1 / 1.05}) {
    const auto drifting = [=](double ratio) {
      return [=](Algorithm who, size_t turn) {
        return (who == Algorithm::kRing ? ratio : 1) * std::pow(drift, double(turn));
      };
    };
    const Match same = played(kPair, Algorithm::kRing, drifting(1.0));
    for (const double each : same.bouts().front().ratios) EXPECT_NEAR(each, 1, 0.01);
    EXPECT_EQ(outcomeOf(kPair, played(kPair, Algorithm::kRing, drifting(1.15))).verdict(), Verdict::kMissed);
  }
}

TEST(Duel, ARoundIsTheSameBackwardsAndBeginsWithEachInTurn) {
  const Cell cell = cellOf({{Algorithm::kRing, {10}}, {Algorithm::kTree, {11}}, {Algorithm::kOneShot, {12}}});
  Match match(cell, Algorithm::kRing, 10);
  for (size_t round = 0; round < 6; ++round) {
    std::vector<size_t> order = match.order();
    ASSERT_EQ(order.size(), 6u);
    EXPECT_EQ(order.front(), round % 3);
    EXPECT_TRUE(std::equal(order.begin(), order.end(), order.rbegin()));
    match.add(std::vector<double>(6, 1.0));
  }
}

TEST(Duel, OpponentsAreThoseNearTheFastestOrElseTheNext) {
  const Cell close = cellOf({{Algorithm::kRing, {13}},
                             {Algorithm::kTree, {10}},
                             {Algorithm::kOneShot, {13.9}},
                             {Algorithm::kDirect, {14.1}}});
  const Match far(close, Algorithm::kRing, 10);
  ASSERT_EQ(far.bouts().size(), 2u);
  EXPECT_EQ(far.bouts()[0].contender, Algorithm::kTree);
  EXPECT_EQ(far.bouts()[1].contender, Algorithm::kOneShot);
  // A choice that the sweep knows nothing of is up against all the same.
  EXPECT_EQ(Match(close, Algorithm::kTwoShot, 10).bouts().size(), 3u);
  // Who has the field to himself is timed nonetheless, against the next best.
  const Cell alone = cellOf({{Algorithm::kRing, {10}}, {Algorithm::kTree, {90}}, {Algorithm::kOneShot, {50}}});
  const Match easy(alone, Algorithm::kRing, 10);
  ASSERT_EQ(easy.bouts().size(), 1u);
  EXPECT_EQ(easy.bouts()[0].contender, Algorithm::kOneShot);
  EXPECT_EQ(easy.calls(), 300);  // 3 ms
  EXPECT_FALSE(easy.over());
}

TEST(Duel, OnASlowerMachineFewerCallsFillABlock) {
  Match match(kPair, Algorithm::kRing, 10);
  EXPECT_EQ(match.calls(), 300);
  match.settle({5, 6, 6, 5});
  EXPECT_EQ(match.calls(), 300) << "no more than the sweep says";
  match.settle({100, 300, 200, 150});
  EXPECT_EQ(match.calls(), 30);
  match.settle({1e6, 1e6, 1e6, 1e6});
  EXPECT_EQ(match.calls(), 1);
  EXPECT_EQ(match.rounds(), 0u);
}

// The sweep may say what it likes: what counts are the new times.
TEST(Duel, OneWhoLooksGoodInTheSweepIsMissedByNewTimes) {
  const Cell flattered = cellOf({{Algorithm::kRing, {5}}, {Algorithm::kTree, {10}}});
  const Match match =
      played(flattered, Algorithm::kRing, [](Algorithm who, size_t) { return who == Algorithm::kRing ? 2.0 : 1.0; });
  EXPECT_EQ(match.rounds(), kLooks.front());
  EXPECT_EQ(outcomeOf(flattered, match).verdict(), Verdict::kMissed);
  EXPECT_EQ(outcomeOf(flattered, match).hardest()->contender, Algorithm::kTree);
}

// By the opponent that leaves most; the rounds keep their scatter, and what won keeps its times.
TEST(Duel, WhatLostCountsAsThatSlow) {
  Sweep sweep{
      "a test", 2, {cellOf({{Algorithm::kRing, {4, 5, 7}}, {Algorithm::kTree, {10}}, {Algorithm::kOneShot, {8}}})}};
  Outcome outcome{Collective::kAllReduce, "shm", 4, 32768, Algorithm::kRing, {}};
  outcome.bouts = {{Algorithm::kTree, {1.5, 1.6, 1.4}, Verdict::kMissed},
                   {Algorithm::kOneShot, {2, 2, 2}, Verdict::kMissed}};
  amend(sweep, {outcome});
  const Cell& cell = sweep.cells.front();
  EXPECT_DOUBLE_EQ(cell.us(Algorithm::kRing), 16);
  EXPECT_DOUBLE_EQ(cell.times.at(Algorithm::kRing).front(), 4 * 16 / 5.0);
  EXPECT_EQ(cell.fastest(), Algorithm::kOneShot);
  outcome.choice = Algorithm::kOneShot;
  outcome.bouts = {{Algorithm::kTree, {0.9}, Verdict::kWithin}};
  amend(sweep, {outcome});
  EXPECT_DOUBLE_EQ(sweep.cells.front().us(Algorithm::kOneShot), 8);
  outcome.bytes = 8, outcome.bouts.front().ratios = {3};
  amend(sweep, {outcome});
  EXPECT_DOUBLE_EQ(sweep.cells.front().us(Algorithm::kOneShot), 8) << "of another cell";
}

TEST(Duel, GoesOnWithThoseThatAreOpenUntilTheEnd) {
  const Cell cell = cellOf({{Algorithm::kRing, {10}}, {Algorithm::kTree, {10}}, {Algorithm::kOneShot, {10}}});
  // Against tree a tie at the limit, against oneshot a clear lead.
  const auto truth = [turns = 0](Algorithm who, size_t) mutable {
    if (who == Algorithm::kOneShot) return 2.0;
    if (who == Algorithm::kTree) return 1.0;
    return turns++ / 2 % 2 == 0 ? 1.0 : 1.2;  // two turns a round
  };
  const Match match = played(cell, Algorithm::kRing, truth);
  EXPECT_EQ(match.rounds(), kLooks.back());
  EXPECT_EQ(match.bouts()[1].ratios.size(), kLooks.front());
  EXPECT_EQ(match.bouts()[1].verdict, Verdict::kWithin);
  EXPECT_EQ(outcomeOf(cell, match).verdict(), Verdict::kOpen);
  EXPECT_EQ(outcomeOf(cell, match).hardest()->contender, Algorithm::kTree);
  // No time left: the first look is the last.
  EXPECT_EQ(played(cell, Algorithm::kRing, truth, 0).rounds(), kLooks.front());
}

TEST(Duel, CountsWhatIsUndecidedAsMissed) {
  const auto outcomeAt = [](double ratio, Verdict verdict) {
    return Outcome{Collective::kReduce,
                   "tcp",
                   8,
                   64,
                   Algorithm::kRing,
                   {{Algorithm::kTree, std::vector<double>(10, ratio), verdict}}};
  };
  const std::vector<Outcome> outcomes = {outcomeAt(1, Verdict::kWithin), outcomeAt(1.31, Verdict::kMissed),
                                         outcomeAt(1.1, Verdict::kOpen), outcomeAt(0.5, Verdict::kWithin)};
  const std::string table = tableOf(outcomes, false);
  EXPECT_NE(table.find("4 cells: 50.0 % of the choices (2)"), std::string::npos) << table;
  EXPECT_NE(table.find("1 are missed, and 1 undecided"), std::string::npos) << table;
  EXPECT_NE(table.find("reduce          tcp        8         64  missed      ring          tree            1.31"),
            std::string::npos)
      << table;
  EXPECT_EQ(std::ranges::count(table, '\n'), 4) << table;
  EXPECT_EQ(std::ranges::count(tableOf(outcomes, true), '\n'), 6);
}

TEST(Duel, OutcomesAreLines) {
  const Outcome outcome = outcomeOf(kPair, played(kPair, Algorithm::kRing, [](Algorithm, size_t) { return 1.0; }));
  const std::string line = toLine(outcome);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Outcome back = outcomeFrom(line);
  EXPECT_EQ(toLine(back), line);
  EXPECT_EQ(back.verdict(), Verdict::kWithin);
  for (const char* wrong :
       {"", "{", "{}", "[1]", "{\"operation\":\"sum\"}",
        "{\"operation\":\"reduce\",\"transport\":\"shm\",\"ranks\":2,\"bytes\":8,\"choice\":\"ring\","
        "\"ratios\":{\"tree\":[]}}"})
    EXPECT_THROW(outcomeFrom(wrong), Error) << wrong;
  // More than a match has rounds, of which no bound is known; and what is no ratio.
  const std::string ratios = R"("ratios":{"tree":[)";
  std::string many = R"({"operation":"reduce","transport":"shm","ranks":2,"bytes":8,"choice":"ring",)" + ratios + "1";
  for (int i = 0; i < 1200; ++i) many += ",1";
  EXPECT_THROW(outcomeFrom(many + "]}}"), Error);
  const std::string none = many.substr(0, many.find(ratios) + ratios.size());
  for (const char* wrong : {"0]}}", "-1]}}", "1,1e300]}}"}) EXPECT_THROW(outcomeFrom(none + wrong), Error) << wrong;
  EXPECT_NO_THROW(outcomeFrom(none + "1,2]}}"));
}

TEST(Duel, CellsArePickedByTheirTitles) {
  Sweep sweep;
  for (const char* transport : {"shm", "tcp"})
    for (size_t bytes = 8; bytes <= 512; bytes *= 8)
      sweep.cells.push_back(
          {Collective::kReduce, transport, 2, bytes, {{Algorithm::kRing, {1}}, {Algorithm::kTree, {1}}}});
  sweep.cells.push_back({Collective::kReduce, "shm", 4, 8, {{Algorithm::kRing, {1}}}});  // nothing to choose from
  EXPECT_EQ(pickedFrom(sweep, ".", 0).size(), 6u);
  EXPECT_EQ(pickedFrom(sweep, "shm 2", 0).size(), 3u);
  EXPECT_EQ(titleOf(pickedFrom(sweep, "^reduce tcp 2 64$", 0).front()), "reduce tcp 2 64");
  const std::vector<Cell> some = pickedFrom(sweep, ".", 2);
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(titleOf(some[1]), "reduce tcp 2 8");
  EXPECT_THROW(pickedFrom(sweep, "p2p", 0), Error);
  EXPECT_THROW(pickedFrom(sweep, "(", 0), Error);
}

}  // namespace
}  // namespace tutti::tune

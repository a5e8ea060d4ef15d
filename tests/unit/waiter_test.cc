#include "engine/waiter.h"

#include <gtest/gtest.h>

#include "base/ticks.h"

namespace tutti::engine {
namespace {

constexpr uint64_t kLong = 10'000'000, kShort = 10'000;  // ticks of a yield

TEST(CrowdedCore, IsFeltWhereAYieldTookASlice) {
  Crowd crowd;
  EXPECT_FALSE(crowd.felt());
  crowd.judge(readTicks(), kShort);
  EXPECT_FALSE(crowd.felt());
  crowd.judge(readTicks() + (uint64_t{1} << 40), kLong);  // so that it lasts for as long as this test may take
  EXPECT_TRUE(crowd.felt());
  crowd.judge(readTicks(), kShort);
  EXPECT_TRUE(crowd.felt()) << "one that was short says nothing";
}

TEST(CrowdedCore, IsForgotten) {
  Crowd crowd;
  crowd.judge(1, kLong);  // long ago
  EXPECT_FALSE(crowd.felt());
}

// One slice, as a neighbour's start takes, is soon forgotten; what is found again and again is believed for longer.
TEST(CrowdedCore, IsBelievedForLongerTheMoreOftenItWasFound) {
  Crowd crowd;
  const uint64_t now = readTicks();
  crowd.judge(now - 5'000'000, kLong);
  EXPECT_FALSE(crowd.felt());
  for (int again = 0; again < 8; ++again) crowd.judge(now - 50'000'000, kLong);
  EXPECT_TRUE(crowd.felt() || readTicks() > now + 70'000'000);
}

TEST(CrowdedCore, RanksThatShareItWorkInTurn) {
  Crowd alone, shared(4);
  const uint64_t later = readTicks() + (uint64_t{1} << 40);
  for (Crowd* crowd : {&alone, &shared}) crowd->judge(later, 3'000'000);
  EXPECT_TRUE(alone.felt());
  EXPECT_FALSE(shared.felt());
}

// All that share it may have worked for a while, once.
TEST(CrowdedCore, OneLongTurnOfRanksThatShareItSaysNothing) {
  const uint64_t later = readTicks() + (uint64_t{1} << 40);
  for (const auto& [shorts, felt] : {std::pair(0, true), std::pair(7, true), std::pair(8, false)}) {
    Crowd shared(4);
    shared.judge(later, kLong);
    EXPECT_FALSE(shared.felt());
    for (int yield = 0; yield < shorts; ++yield) shared.judge(later, kShort);
    shared.judge(later, kLong);
    EXPECT_EQ(shared.felt(), felt) << shorts;
  }
}

TEST(CrowdedCore, IsFoundAgainByOneLongTurn) {
  for (const bool wasFelt : {false, true}) {
    Crowd shared(4);
    for (int yield = 0; yield < (wasFelt ? 2 : 1); ++yield) shared.judge(1, kLong);  // long ago
    for (int yield = 0; yield < 8; ++yield) shared.judge(1, kShort);
    EXPECT_FALSE(shared.felt());
    shared.judge(readTicks() + (uint64_t{1} << 40), kLong);
    EXPECT_EQ(shared.felt(), wasFelt);
  }
}

// At once where ranks share the core, else after a while: without giving way to those who have their slice then.
TEST(WaitingThread, SleepsSoonInACrowd) {
  Crowd crowd;
  crowd.judge(readTicks() + (uint64_t{1} << 40), kLong);
  for (const auto& [ranksPerCore, looks] : {std::pair(1.0, 1001), std::pair(2.0, 1)}) {
    Waiter waiter(ranksPerCore, crowd);
    for (int look = 1; look < looks; ++look) {
      waiter.pause();
      ASSERT_FALSE(waiter.mayDoze()) << look;
    }
    EXPECT_TRUE(waiter.pause());
    EXPECT_TRUE(waiter.mayDoze());
    waiter.reset();
    EXPECT_FALSE(waiter.mayDoze());
  }
}

int looksBeforeSleep(double ranksPerCore) {
  Crowd crowd;
  Waiter waiter(ranksPerCore, crowd);
  int looks = 0;
  while (!waiter.mayDoze()) waiter.pause(), ++looks;
  return looks;
}

TEST(WaitingThread, SleepsInTheEndWhereThereIsNone) { EXPECT_GT(looksBeforeSleep(1), 1); }

// A yield that took a slice would end the count early, so what is certain is only that it never gets longer.
TEST(WaitingThread, GivesWayLessOftenTheMoreShareItsCore) {
  EXPECT_LE(looksBeforeSleep(128), 32);
  EXPECT_GE(looksBeforeSleep(1e9), 1);
}

TEST(WaitingThread, SleepsLongerTheMoreShareItsCore) {
  using std::chrono::milliseconds;
  EXPECT_EQ(longestSleep(0.5), milliseconds(1));
  EXPECT_EQ(longestSleep(4), milliseconds(1));
  EXPECT_EQ(longestSleep(32), milliseconds(8));
  EXPECT_EQ(longestSleep(1024), milliseconds(16));
}

}  // namespace
}  // namespace tutti::engine

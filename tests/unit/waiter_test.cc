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

TEST(WaitingThread, SleepsAtOnceInACrowd) {
  Crowd crowd;
  crowd.judge(readTicks() + (uint64_t{1} << 40), kLong);
  for (const bool spins : {true, false}) {
    Waiter waiter(spins, crowd);
    EXPECT_FALSE(waiter.mayDoze());
    EXPECT_TRUE(waiter.pause());
    EXPECT_TRUE(waiter.mayDoze());
    waiter.reset();
    EXPECT_FALSE(waiter.mayDoze());
  }
}

TEST(WaitingThread, SleepsInTheEndWhereThereIsNone) {
  Crowd crowd;
  Waiter waiter(true, crowd);
  int looks = 0;
  while (!waiter.mayDoze()) waiter.pause(), ++looks;
  EXPECT_GT(looks, 1);
}

}  // namespace
}  // namespace tutti::engine

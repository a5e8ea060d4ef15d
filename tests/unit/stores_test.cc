// How a step finds out which stores fill its slots.
#include "engine/stores.h"

#include <gtest/gtest.h>

namespace tutti::engine {
namespace {

constexpr size_t kFilled = 64 << 10;  // bytes, by a step

// How often slots went around the caches, of so many, where a line takes so many ticks.
int around(Stores& stores, int slots, uint64_t ordinary, uint64_t around) {
  int went = 0;
  for (int i = 0; i < slots; ++i) {
    const bool goes = stores.next().around;
    went += goes;
    stores.took(goes, kFilled, (goes ? around : ordinary) * kFilled / 64);
  }
  return went;
}

TEST(Stores, GoAroundWhereTheCoresShareNoCache) {
  Stores stores;
  EXPECT_GT(around(stores, 128, 60, 8), 120);
}

TEST(Stores, AreOrdinaryWhereTheyShareOne) {
  Stores stores;
  EXPECT_LT(around(stores, 128, 14, 5), 5);
}

TEST(Stores, FollowCoresThatAreMoved) {
  Stores stores;
  around(stores, 1000, 14, 5);
  around(stores, 200, 60, 8);
  EXPECT_GT(around(stores, 128, 60, 8), 120);
  around(stores, 128, 14, 5);
  EXPECT_LT(around(stores, 128, 14, 5), 5);
}

// What a rank writes for itself: nobody pays for it.
TEST(Stores, OfOutputsGoAroundForAQuarter) {
  Stores little(Stores::Gain::kQuarter), enough(Stores::Gain::kQuarter);
  EXPECT_LT(around(little, 128, 12, 10), 5);
  EXPECT_GT(around(enough, 128, 13, 10), 120);
}

// Of slots that are filled in no time only some are timed, and those that are tried.
TEST(Stores, OfManyShortSlotsFollowThemToo) {
  Stores stores;
  const auto fill = [&](int slots, uint64_t ordinary, uint64_t goingAround) {
    int around = 0, timed = 0;
    for (int slot = 0; slot < slots; ++slot) {
      const Stores::Choice choice = stores.nextOfMany();
      EXPECT_TRUE(choice.isTimed || !choice.isTry);
      if (choice.isTimed) stores.took(choice.around, kFilled, kFilled / 64 * (choice.around ? goingAround : ordinary));
      around += choice.around, timed += choice.isTimed;
    }
    EXPECT_LT(timed, slots / 5);
    return around;
  };
  EXPECT_LT(fill(128, 14, 5), 5);
  fill(800, 60, 8);
  EXPECT_GT(fill(128, 60, 8), 120);
  fill(128, 14, 5);
  EXPECT_LT(fill(128, 14, 5), 5);
}

TEST(Stores, SayWhatIsTried) {
  Stores stores;
  int tries = 0;
  for (int i = 0; i < 122; ++i) {
    const Stores::Choice choice = stores.next();
    EXPECT_EQ(choice.around, choice.isTry) << "ordinary ones are usual";
    tries += choice.isTry;
  }
  EXPECT_EQ(tries, 4);
  EXPECT_FALSE(stores.usual().isTry || stores.usual().around);
}

TEST(Stores, TakeNoInterruptionForTheRule) {
  Stores stores;
  around(stores, 100, 60, 8);
  stores.took(true, kFilled, uint64_t{1} << 40);
  EXPECT_GT(around(stores, 128, 60, 8), 120);
}

}  // namespace
}  // namespace tutti::engine

// How a step finds out which stores fill its slots.
#include "engine/stores.h"

#include <gtest/gtest.h>

namespace tutti::engine {
namespace {

constexpr size_t kMuchBytes = 64 << 10;

// How often slots went around the caches, of so many, where a line takes so many ticks.
int around(Stores& stores, int slots, uint64_t ordinary, uint64_t around) {
  int went = 0;
  for (int i = 0; i < slots; ++i) {
    const bool goes = stores.around();
    went += goes;
    stores.took(goes, kMuchBytes, (goes ? around : ordinary) * kMuchBytes / 64);
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

TEST(Stores, TakeNoInterruptionForTheRule) {
  Stores stores;
  around(stores, 100, 60, 8);
  stores.took(true, kMuchBytes, uint64_t{1} << 40);
  EXPECT_GT(around(stores, 128, 60, 8), 120);
}

}  // namespace
}  // namespace tutti::engine

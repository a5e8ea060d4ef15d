// What a device registers of the program's memory: as much as may be, the newest, and never what is in use.
#include "transports/verbs/memory_cache.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <random>

#include "verbs/fake_network.h"

namespace tutti::verbs {
namespace {

constexpr size_t kMiB = 1 << 20;

class MemoryCaches : public testing::Test {
 protected:
  static tuttiTransportMemory memory(uint64_t number, size_t bytes = kMiB) {
    return {reinterpret_cast<void*>(number << 32), bytes, number};
  }
  bool hold(uint64_t number, size_t bytes = kMiB) {
    const auto held = cache().hold(memory(number, bytes), 3 * kMiB);
    said_ += held.why;
    return held.key && device_.knows(*held.key, memory(number).begin, bytes);
  }
  bool use(uint64_t number) {
    const bool held = hold(number);
    if (held) cache().letGo(number);
    return held;
  }
  bool has(uint64_t number) {
    const uint64_t before = cache().made();
    return use(number) && cache().made() == before;
  }
  MemoryCache& cache() { return *device_.cache; }
  std::string said() { return std::exchange(said_, ""); }

  std::mt19937_64 random_{1};
  double refused_ = 0;
  FakeDevice device_{"fake", 100 * kMiB, random_, refused_};
  std::string said_;
};

TEST_F(MemoryCaches, WhatWasUsedLongestAgoMakesRoom) {
  for (uint64_t number : {1, 2, 3, 1, 4}) EXPECT_TRUE(use(number));
  EXPECT_EQ(cache().bytes(), 3 * kMiB);
  EXPECT_TRUE(has(1) && has(3) && has(4));
  EXPECT_FALSE(has(2));
  EXPECT_EQ(device_.count(), 3u);
  EXPECT_EQ(said(), "");
}

TEST_F(MemoryCaches, WhatIsInUseStays) {
  EXPECT_TRUE(hold(1) && hold(2) && hold(2) && hold(3));
  EXPECT_FALSE(hold(4));
  EXPECT_EQ(said(),
            "1048576 bytes of registered memory are copied into slots and not sent from where they are: fake may "
            "register 3145728 bytes (TUTTI_IB_MEMORY_MIB), and others are in use");
  cache().letGo(2);
  EXPECT_FALSE(hold(4)) << "it is held once more";
  EXPECT_EQ(said(), "") << "once is enough";
  cache().letGo(2);
  EXPECT_TRUE(hold(4));
  EXPECT_EQ(cache().count(), 3u);
  for (uint64_t number : {1, 3, 4}) cache().letGo(number);
}

// What is idle is not given up for what has no room all the same.
TEST_F(MemoryCaches, WhatHasNoRoomTakesNone) {
  EXPECT_TRUE(use(1) && hold(2));
  EXPECT_FALSE(hold(5, 2 * kMiB + 1));
  EXPECT_FALSE(hold(6, 3 * kMiB + 1));
  EXPECT_NE(said().find("fake may register 3145728 bytes (TUTTI_IB_MEMORY_MIB)"), std::string::npos);
  EXPECT_TRUE(has(1));
  cache().letGo(2);
}

TEST_F(MemoryCaches, WhatIsForgottenGoesWithItsLastUser) {
  EXPECT_TRUE(use(1) && hold(2) && hold(2));
  cache().forget(1);
  EXPECT_EQ(device_.count(), 1u);
  cache().forget(2);
  EXPECT_FALSE(hold(2));
  cache().letGo(2);
  EXPECT_EQ(device_.count(), 1u);
  cache().letGo(2);
  EXPECT_EQ(device_.count(), 0u);
  EXPECT_EQ(cache().bytes(), 0u);
  cache().forget(7);  // of which it never heard
}

TEST_F(MemoryCaches, WhatIsRefusedIsAskedForAgainOnceSomethingHasGone) {
  EXPECT_TRUE(use(1));
  refused_ = 1;
  EXPECT_FALSE(hold(2));
  EXPECT_NE(said().find("fake does not register them: Bad address"), std::string::npos);
  refused_ = 0;
  EXPECT_FALSE(hold(2));
  cache().forget(1);
  EXPECT_TRUE(use(2));
}

TEST_F(MemoryCaches, WhatIsKnownToBeRefusedMakesNoRoom) {
  EXPECT_TRUE(use(1) && use(2));
  refused_ = 1;
  EXPECT_FALSE(hold(4));
  refused_ = 0;
  EXPECT_TRUE(use(3));
  EXPECT_EQ(cache().count(), 3u);
  EXPECT_FALSE(hold(4));
  EXPECT_EQ(cache().count(), 3u);
}

TEST_F(MemoryCaches, OneIsGivenUpWhereNoneIsInUse) {
  EXPECT_TRUE(use(1) && hold(2));
  EXPECT_TRUE(cache().giveUpOne());
  EXPECT_EQ(cache().count(), 1u);
  EXPECT_FALSE(cache().giveUpOne());
  cache().letGo(2);
}

// A limit of locked memory that is lower than the bound.
TEST(MemoryCacheLimits, IdleOnesMakeRoomForWhatTheSystemRefuses) {
  std::mt19937_64 random{1};
  const double never = 0;
  FakeDevice device("fake", 2 * kMiB, random, never);
  const auto use = [&](uint64_t number, size_t bytes) {
    const bool held =
        device.cache->hold({reinterpret_cast<void*>(number << 32), bytes, number}, SIZE_MAX / 2).key.has_value();
    if (held) device.cache->letGo(number);
    return held;
  };
  EXPECT_TRUE(use(1, kMiB) && use(2, kMiB) && use(3, kMiB));
  EXPECT_EQ(device.count(), 2u);
  EXPECT_FALSE(use(4, 3 * kMiB));
  EXPECT_TRUE(use(5, kMiB));
}

// Against a model that only counts.
TEST_F(MemoryCaches, AnyOrder) {
  std::map<uint64_t, uint32_t> users;  // of what is held
  const auto below = [&](uint64_t limit) { return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_); };
  uint64_t granted = 0;
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t number = 1 + below(8);
    refused_ = below(10) == 0 ? 0.5 : 0;
    const size_t bytes = number * kMiB / 4;
    if (below(2) == 0 && hold(number, bytes)) {
      ++users[number];
      ++granted;
    } else if (const auto held = users.find(number); held != users.end()) {
      cache().letGo(number);
      if (--held->second == 0) users.erase(held);
    } else if (below(4) == 0) {
      cache().forget(number);
    }
    ASSERT_LE(cache().bytes(), 3 * kMiB);
    ASSERT_EQ(cache().count(), device_.count());
    for (const auto& [one, count] : users) {
      const auto again = cache().hold(memory(one, one * kMiB / 4), 3 * kMiB);
      ASSERT_TRUE(again.key && device_.knows(*again.key, memory(one).begin, one * kMiB / 4));
      cache().letGo(one);
    }
  }
  EXPECT_GT(granted, 1000u);
  for (const auto& [one, count] : users)
    for (uint32_t i = 0; i < count; ++i) cache().letGo(one);
}

}  // namespace
}  // namespace tutti::verbs

#include "base/ticks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace tutti {
namespace {

// Many more threads than cores: each loses its core now and then, between two clocks as well.
TEST(Timeline, SaysTheSameOfAMomentWheneverItIsAsked) {
  constexpr int kThreads = 16;
  constexpr int64_t kApart = 100'000;  // ns; a slice of another thread is millions
  const Timeline timeline;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const uint64_t ticks = readTicks();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  std::vector<int64_t> least(kThreads, INT64_MAX), most(kThreads, INT64_MIN);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      while (std::chrono::steady_clock::now() < end) {
        const int64_t said = timeline.wallNs(ticks);
        least[i] = std::min(least[i], said);
        most[i] = std::max(most[i], said);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(*std::max_element(most.begin(), most.end()) - *std::min_element(least.begin(), least.end()), kApart);
}

TEST(Timeline, GoesAtTheRateOfTheClock) {
  const Timeline timeline;
  const auto from = std::chrono::system_clock::now();
  const uint64_t first = readTicks();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const uint64_t last = readTicks();
  const int64_t wall = std::chrono::duration_cast<std::chrono::nanoseconds>(from.time_since_epoch()).count();
  EXPECT_GE(timeline.wallNs(last) - timeline.wallNs(first), 49'000'000);
  EXPECT_GE(timeline.nanoseconds(last - first), 49'000'000U);
  EXPECT_LT(std::abs(timeline.wallNs(first) - wall), 1'000'000'000);
}

}  // namespace
}  // namespace tutti

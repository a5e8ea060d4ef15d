// A library whose own threads lack memory: each of their allocations fails in its turn.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

#include "support/patience.h"
#include "support/scarce_memory.h"

namespace tutti::test {

// Within the time that anything may take.
inline bool comesTrue(const std::function<bool()>& look) {
  const auto until = std::chrono::steady_clock::now() + longWait();
  for (; !look(); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    if (std::chrono::steady_clock::now() > until) return false;
  return true;
}

inline int threadsNow() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// `body` with each allocation of the others, or each `step`th, failing in its turn, until it gets by without that, or
// fails.
inline void lackEach(const std::function<void()>& prepare, const std::function<void()>& body, int step = 1) {
  for (int given = 0; !testing::Test::HasFailure(); given += step) {
    SCOPED_TRACE("after " + std::to_string(given) + " allocations");
    prepare();
    const OthersLackOne lacking(given);
    body();
    if (!OthersLackOne::lacked()) return;
  }
}

}  // namespace tutti::test

// A second, independent reading of schedule.h: runs schedules on numbers in plain memory. It knows nothing of what a
// slot ought to carry; it packs, moves and adds, and compares the outputs at the end with what the collective promises.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace tutti::schedule::test {

struct Setting {
  int depth = 1;
  int rounds = 4;
  bool inPlace = false;
  // kSplit messages may end early: the first `fullSegments` have all rounds, the next has one, the rest is empty.
  int fullSegments = 1 << 20;
  uint64_t seed = 0;  // which lane moves next
};

// Empty if the run ended, left no slot behind and every output is right; else what went wrong.
std::string runConcretely(std::span<const Schedule> schedules, const Setting& setting);

}  // namespace tutti::schedule::test

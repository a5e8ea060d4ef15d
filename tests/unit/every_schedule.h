// What the tests of all schedules share.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schedule/algorithm.h"

namespace tutti::schedule::test {

// The schedule of each rank.
inline std::vector<Schedule> buildAll(Algorithm algorithm, const Shape& shape) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < shape.size; ++rank) schedules.push_back(build(algorithm, shape, rank));
  return schedules;
}

// Of a collective given as its number.
inline std::string nameOfCase(const ::testing::TestParamInfo<int>& info) {
  std::string name(nameOf(static_cast<Collective>(info.param)));
  std::erase_if(name, [](char c) { return c == '-' || c == '/'; });
  return name;
}

}  // namespace tutti::schedule::test

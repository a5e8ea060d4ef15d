// A whole job on one thread: the lanes of all ranks, their links, and chance, which says who runs next.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace tutti::interleavings {

struct Result {
  std::optional<std::string> trouble;  // a hang, or a lane that failed
  bool hangs = false;
  uint64_t turns = 0;
};

// Everything follows from the seed.
Result runSchedule(uint64_t seed);

}  // namespace tutti::interleavings

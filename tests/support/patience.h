// How long tests wait for what must come. Only a test that fails waits so long: a machine that is busy with much else,
// or a build that watches every access, is no failure.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "support/sanitized.h"

namespace tutti::test {

// By what times are multiplied: TUTTI_TEST_PATIENCE, or what sanitizers need.
inline uint64_t patience() {
  const char* value = std::getenv("TUTTI_TEST_PATIENCE");
  const uint64_t given = value ? std::strtoull(value, nullptr, 10) : 0;
  return given != 0 ? given : (kSanitized ? 8 : 1);
}

inline std::chrono::milliseconds longWait() { return std::chrono::seconds(20) * patience(); }

}  // namespace tutti::test

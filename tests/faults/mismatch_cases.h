// Every way in which the calls of ranks can fail to match, as a list.
#pragma once
#include <string>
#include <vector>

#include "faults/support/operation.h"

namespace tutti::faults {

// What a rank does instead of, or beside, what the others do.
struct Act {
  enum class What { kCollective, kSend, kReceive, kLeave, kStayAway };
  What what = What::kCollective;
  Operation operation;  // of a message: type and count
  const char* name() const noexcept;
};

struct Case {
  std::string name;
  std::string transports;
  int ranks = 2, deviator = 0;
  Act deviates, others;
  bool onStream = false;
  // What the error text of every rank must contain; of each entry one of the words between bars.
  std::vector<std::string> words;
  tuttiResult_t expected = tuttiInvalidUsage, expectedToo = tuttiInvalidUsage;
  bool awaitsDeadline() const noexcept { return expected == tuttiTimeout || expectedToo == tuttiTimeout; }
  std::string describe() const;
};

// Every case for `transports`; the short form takes each `stride`th.
std::vector<Case> mismatchCases(const std::string& transports, size_t stride);

}  // namespace tutti::faults

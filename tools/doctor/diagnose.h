// What the records of one communicator say about where its ranks parted: pure functions from records to findings.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "doctor/records.h"

namespace tutti::doctor {

// In the order in which they are told: evidence first, then what follows from waiting, then what is only possible.
enum class FindingKind : uint8_t {
  kOtherCollective,  // two ranks made different collectives, or the same in different ways, under one number
  kOtherType,
  kOtherCount,
  kOtherOperator,
  kOtherRoot,
  kOtherTag,
  kOtherMessage,   // the two ends of a message differ
  kToldMismatch,   // the same, told by an error: the records that would show it are not all there
  kLeft,           // no record, and others say that the rank left
  kFailed,         // the rank that failed first, and told the others
  kCycle,          // ranks wait for each other in calls that can never meet
  kNotCome,        // a rank has not made a collective in which others wait
  kNoSuchMessage,  // a send without a receive, or a receive without a send
  kChain,          // ranks wait one for the other, and the last for one that is to blame
  kNoRecord,       // ranks wait for one that left no record, and nobody says why
  kStuck,          // all made the same call, and it does not go on
  kError,          // nothing of all this, but an error
  kOldRecord,      // a record is too old to be compared
  kRunning,        // calls are under way, and no sign that they do not go on
  kHealthy         // nobody waits
};

struct Finding {
  FindingKind kind;
  std::vector<int> blamed;  // ranks to look at first, sorted; may be empty
  std::string text;         // a sentence or two, without a full stop
};

// The first finding is the first divergence; there is at least one.
struct Diagnosis {
  std::vector<Finding> findings;
  bool healthy() const noexcept { return findings.front().kind >= FindingKind::kRunning; }
};

Diagnosis diagnose(const Job& job);

}  // namespace tutti::doctor

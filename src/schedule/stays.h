// Where the value that a step posts stays as it is until the end of the call, so that whoever receives it may read it
// there, and do anything with it. What lanes do (engine::Lane), and what is proved (proof::DirectBy::kLane).
#pragma once
#include <algorithm>

#include "schedule/schedule.h"

namespace tutti::schedule {

enum class Stays : uint8_t { kNowhere, kInInput, kInOutput };

// Any copy of the input; and what is in this rank's output as well, if all receivers put it into theirs as it is: it is
// a result then.
inline Stays staysOf(const Schedule& schedule, const Step& step) {
  const auto from = schedule.from(step), to = schedule.to(step);
  if (step.span != 1) return Stays::kNowhere;
  const bool isCopy = from.size() == 1 && (step.flags & kFinalise) == 0;
  if (isCopy && from[0] == Operand::input()) return Stays::kInInput;
  const bool isThere = (isCopy && from[0] == Operand::output()) || std::ranges::count(to, Operand::output()) == 1;
  return isThere && (step.flags & (kDirectWrite | kLands)) != 0 ? Stays::kInOutput : Stays::kNowhere;
}

}  // namespace tutti::schedule

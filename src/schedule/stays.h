// Where the value that a step posts stays as it is until the end of the call, so that whoever receives it may read it
// there. What lanes do (engine::Lane), and what is proved (proof::DirectBy::kLane and kMapped).
#pragma once
#include <algorithm>

#include "schedule/schedule.h"

namespace tutti::schedule {

enum class Stays : uint8_t { kNowhere, kInInput, kInOutput };

// What all receivers put into their outputs as it is: a copy of the input, or what is in this rank's output as well.
inline Stays staysOf(const Schedule& schedule, const Step& step) {
  const auto from = schedule.from(step), to = schedule.to(step);
  if ((step.flags & (kDirectWrite | kLands)) == 0 || step.span != 1) return Stays::kNowhere;
  const bool isCopy = from.size() == 1 && (step.flags & kFinalise) == 0;
  if (isCopy && from[0] == Operand::input()) return Stays::kInInput;
  const bool isThere = (isCopy && from[0] == Operand::output()) || std::ranges::count(to, Operand::output()) == 1;
  return isThere ? Stays::kInOutput : Stays::kNowhere;
}

// The same where whoever receives it may do anything with it, as to add it up: also any copy of the input.
inline Stays staysForAnyUse(const Schedule& schedule, const Step& step) {
  const auto from = schedule.from(step);
  const bool copiesInput = from.size() == 1 && from[0] == Operand::input() && step.span == 1;
  return copiesInput && (step.flags & kFinalise) == 0 ? Stays::kInInput : staysOf(schedule, step);
}

}  // namespace tutti::schedule

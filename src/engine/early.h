// Which steps may put what they receive into the output before their turn, as far as it is there: a long piece is read
// from a peer's memory in one go, where slot by slot would take a system call for each.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace tutti::engine {

enum class Early : uint8_t {
  kNever,
  kApart,  // where input and output are not the same memory
  kAlways,
};

// Of each step. Those that may only copy from a link to the output, of which no other step touches that segment.
std::vector<Early> earlyOf(const schedule::Schedule& schedule);

}  // namespace tutti::engine

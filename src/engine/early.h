// Which steps may go on before their turn: one system call for many slots takes less than one for each, and a rank that
// shares its core does more in each of its turns.
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

// Of each step: whether it may put what it receives into the output as far as it is there. Those that only copy from a
// link to the output, of which no other step touches that segment.
std::vector<Early> earlyOf(const schedule::Schedule& schedule);

// Of each step: whether it may post later rounds as far as its links have room. Those that copy the input to links
// which no other step posts to, and perhaps to a segment of the output which no other step touches: each link carries
// the same then, nothing that is written is read by others, and the input is there from the begin on.
std::vector<bool> postsEarlyOf(const schedule::Schedule& schedule);

}  // namespace tutti::engine

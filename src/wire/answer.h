// What comes back for a question to another rank.
#pragma once
#include <cstdint>

#include "base/bytes.h"

namespace tutti::control {

// What a rank, or the control plane in its place, says to a question.
struct Answer {
  uint64_t count = 0;  // how many have come from that rank
  bool left = false;   // the rank's owner has left in good order: it will do nothing any more
  Bytes body;          // of its `respond`; empty when it can not be asked any more
  bool ended = false;  // it left because its process ended, and not by itself
};

// What such a rank did, in words.
inline constexpr const char* kEndedWithProcess = "left without destroying the communicator (its process ended)";

}  // namespace tutti::control

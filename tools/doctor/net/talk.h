// Two ranks measure the link between them.
#pragma once
#include <atomic>
#include <chrono>

#include "link/link.h"

namespace tutti::doctor::net {

struct Measured {
  double latencyUs = 0;        // of a few bytes, one way
  double there = 0, back = 0;  // GB/s from the lower rank to the higher one, and the other way
};

struct Terms {
  std::chrono::milliseconds each{50};          // how long each of the two bandwidths is looked at, about
  std::chrono::milliseconds patience{10'000};  // after so long without a byte, the link does not work
  const std::atomic<bool>* over = nullptr;     // set when all has failed
};

// Both ends call it. How much is sent is found out on the way: the longest message takes about half of terms.each. The
// higher rank does not learn what the lower one has measured. Throws Error: kTimeout, kRemote.
Measured talkAsLower(link::Connection& connection, const Terms& terms);
Measured talkAsHigher(link::Connection& connection, const Terms& terms);

}  // namespace tutti::doctor::net

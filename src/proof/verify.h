// Proof that a set of schedules is right, by running it symbolically.
//
// Every element's value is a term: a rank's input, or a reduction of terms in a given order. Deterministic lanes that
// block on bounded FIFOs form a Kahn network, so one run covers every interleaving: what holds in it holds always.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace tutti::proof {

using schedule::Schedule;

struct Verdict {
  bool ok = true;
  // What is wrong, in the field's words: a missing or doubled contribution, a read of something unwritten, a slot that
  // carries another segment than its reader expects, a deadlock, different orders or roundings on different ranks, an
  // index out of range, a step whose in-place run (input and output the same memory) reads what it has overwritten,
  // over direct links two ranks that may use the same memory at the same time.
  std::vector<std::string> problems;
};

// Runs the schedules of all ranks (schedules[r].rank == r) over FIFOs of `depth` slots, for enough rounds to reach
// every lag and every wrap of the FIFO. Checks what Schedule::collective promises, out of place and in place.
Verdict verify(std::span<const Schedule> schedules, int depth);

// The smallest depth with which they finish, or 0 if no depth up to `limit` does.
int smallestDepth(std::span<const Schedule> schedules, int limit = 64);

}  // namespace tutti::proof

// The run of all ranks' schedules in simulated time, event by event.
//
// A rank runs its steps as engine/lane.cc does: in order, each when all its sources have come and all its destinations
// have room; one lane a channel. A step keeps its lane busy while it adds up what it has more than one source of; a
// copy is free, as its transfer is what takes time.
//
// A slot leaves through the sender's resource and passes that of the receiver as it comes in (contention.h). The room
// that a receiver makes is known to the sender a latency later.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/layout.h"
#include "sim/network.h"
#include "sim/wiring.h"

namespace tutti::sim {

// Leaves out rounds in the middle, which are like those beside them: round r stands for r, or from `head` on r + skip.
struct Rounds {
  size_t head = SIZE_MAX, skip = 0;
  size_t run(size_t rounds) const noexcept {
    if (rounds <= head) return rounds;
    return rounds > head + skip ? rounds - skip : head;
  }
  size_t standsFor(size_t round) const noexcept { return round < head ? round : round + skip; }
};

struct Outcome {
  std::vector<Picoseconds> finish;        // of each rank that was run
  std::vector<Picoseconds> iterationEnd;  // when the last lane was through with each iteration
  std::vector<Picoseconds> busy;          // of each resource
  std::vector<uint64_t> bytes;            // through each resource
  uint64_t events = 0;
};

struct EventLimits {
  uint64_t events = 120'000'000;
};

// Throws Error(kInvalidArgument) where the schedules never end, saying who waits for whom, or where there are more
// events than the limit.
Outcome runEvents(std::span<const Schedule> schedules, const Wiring& wiring, const Network& network,
                  const kernels::Layout& layout, const Rounds& rounds, const EventLimits& limits = {});

}  // namespace tutti::sim

// How long a collective takes on a cluster under one algorithm, by running the schedules that its builder makes.
//
// What would take too long is not run in full, and the result says so: one host stands for all where every host does
// the same (wiring.h), a ring is reckoned instead of run (ring_form.h), and of a message of very many rounds some are
// run, from which the rest follows.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/algorithm.h"
#include "sim/message.h"
#include "sim/network.h"

namespace tutti::sim {

enum class Shortcut : uint8_t { kWhereNeeded, kNever, kAlways };

struct Ways {
  Shortcut fold = Shortcut::kWhereNeeded;         // one host for all: by need beyond kMostRanksInFull ranks
  Shortcut ringForm = Shortcut::kWhereNeeded;     // wherever one host stands for all
  Shortcut extrapolate = Shortcut::kWhereNeeded;  // of the rounds
  uint64_t mostEvents = 120'000'000;
  size_t mostBytes = size_t{1} << 30;  // of all schedules, where each rank's is run
};
inline constexpr int kMostRanksInFull = 64;

struct Result {
  double us = 0;
  double busGBs = 0;        // as nccl-tests have it
  double firstUs = 0;       // when the first rank was through; the last one was at `us`
  std::string busiest;      // the resource that was occupied longest
  double busiestShare = 0;  // of the time
  uint64_t events = 0;
  size_t rounds = 0, roundsRun = 0;  // fewer were run than there are: the rest is extrapolated
  bool folded = false;               // one host stood for all
  bool form = false;                 // nothing was run: the ring was reckoned
  bool evened = false;  // its segments were taken to be of one length, though the message's last ones are shorter
  std::vector<uint64_t> bytes;  // through each resource that was run; empty where rounds were left out
};

// The runtime itself makes communicators of up to so many ranks; beyond, its builders go on where their fields have
// room.
inline constexpr int kMostRanksOfRuntime = schedule::Operand::kMaxIndex + 1;

// Who shares a host, for the algorithm that goes by it; for the order of the others ranks come host by host as it is,
// and who builds for all ranks would look at all of them for each.
schedule::Shape shapeOf(schedule::Algorithm algorithm, const Cluster& cluster, const Message& message);

// Throws Error(kInvalidArgument) for an algorithm that the collective lacks, one rank alone, or a root that is none.
void check(schedule::Algorithm algorithm, const Cluster& cluster, const Message& message);

// Throws what check() throws, and Error(kInvalidArgument) for a run that would take too long.
Result simulate(schedule::Algorithm algorithm, const Cluster& cluster, const Message& message, const Ways& ways = {});

// The same for schedules that are at hand, one for each rank.
Result simulate(std::span<const schedule::Schedule> schedules, const Cluster& cluster, const Message& message,
                const Ways& ways = {});

}  // namespace tutti::sim

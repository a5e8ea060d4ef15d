// The predicted time of an algorithm, from the work it gives to the ranks.
#pragma once
#include "plan/plan.h"

namespace tutti::plan {

// What one rank does, in bytes apart from the number of messages.
struct Load {
  double sent = 0;      // stored into links
  double received = 0;  // taken from links, and stored to where they belong
  double combined = 0;  // of those received: the ones added to something
  double messages = 0;  // received
};

// A collective under one algorithm.
struct Work {
  double steps = 0;     // dependent hand-overs, one after the other
  double farSteps = 0;  // those of them between hosts
  Load busiest;         // of the rank with most to do
  Load mean;            // over all ranks: what counts when ranks share the cores
  double waiting =
      0;           // bytes of which the ranks wait for the passage on top of their own work: filling a pipeline, skew
  double fan = 1;  // peers whose flows meet on the way to one rank
  double crossings = 1;  // the busiest host's outgoing bytes in units of busiest.sent
};

// Whether every rank exchanges messages with all others, and so needs links to them.
bool meetsAll(schedule::Algorithm algorithm) noexcept;

// Whether one slot carries a segment of nearly every rank.
bool packsAllRanks(schedule::Algorithm algorithm, Collective collective) noexcept;

// `bytes` as in Request. Rank counts from 1; kHierarchical is not a pattern of its own (predictUs composes it).
Work workOf(schedule::Algorithm algorithm, Collective collective, double bytes, const Machine& machine);

// Microseconds. Grows with bytes. Pure: the same arguments give the same bits on every rank of a homogeneous job.
double predictUs(schedule::Algorithm algorithm, const Request& request, const Machine& machine);

}  // namespace tutti::plan

// The time of a ring without a run of its events.
//
// In a ring every host does the same, and message k of a rank waits only for message k - 1 of the rank before it, for
// its own lane and link, and for room: a recurrence over k with "the later of" and "plus", linear in the (max, +)
// algebra. Such a recurrence becomes periodic: from some k on, p messages later all is as before, only L later
// (G. Cohen, D. Dubois, J. Quadrat, M. Viot, "A linear-system-theoretic view of discrete-event processes", 1985). So
// the messages up to there are reckoned one by one, and K more take K / p times L, however many ranks there are.
//
// Where all links are alike (one host, or one rank a host), slots of s bytes' time leave over C channels, the latency
// is l and adding up takes a, that is, for an all-reduce of R equal rounds on n ranks
//
//   R (n - 1) (max(C s, s + l + a) + max(C s, s + l)) - max(C s, s + l) + C s + l
//
// as each of n - 1 messages that are added to, and of n - 1 that are handed on, waits until the link has taken one of
// each channel, or for its way and the addition; and the last one of the last channel has only to arrive.
#pragma once
#include <optional>

#include "kernels/layout.h"
#include "schedule/schedule.h"
#include "sim/event_run.h"
#include "sim/network.h"

namespace tutti::sim {

// What runEvents() gives for the ranks of host 0 of such a ring, without events and the ends of iterations. All
// segments of `layout` have to be equally long. nullopt where `schedule`, rank 0's, is no ring, or where the channels'
// slots would overtake each other on a link, which the recurrence does not know.
std::optional<Outcome> ringOutcome(const schedule::Schedule& schedule, const Network& network,
                                   const kernels::Layout& layout);

}  // namespace tutti::sim

// Proof that the ranks of a set of schedules may use each other's buffers in place: direct links.
//
// Over a direct link a step that only copies a segment of its input posts where that segment lies, and the receiver
// reads it there when it takes the slot; and a value that lands (kDirectWrite) is written by its sender to the
// receiver's output. So ranks touch each other's memory at times that no slot protects, and what holds in one run need
// not hold in another. What must hold: of two accesses to one place, one of them a write, the earlier one happens
// before the later one (L. Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System", 1978), by the
// order of a rank's steps and by slots that are posted and taken (proof::Order).
#pragma once
#include <span>

#include "proof/trace.h"

namespace tutti::proof {

// The most ranks that use direct links with each other, and of whom it is proved.
inline constexpr size_t kMostDirect = 256;

// Whose input and output are the same memory. kSome is every other rank, each of which opens its memory to nobody where
// the schedule is right out of place only (Schedule::directInPlace): whether it is in place is a rank's own choice.
enum class InPlace : uint8_t { kNobody, kSome, kAll };

// Whose memory ranks use. Of GPUs a copy of the input is lent, and what lands is written to the receiver's output. On
// the host (engine::Lane) any copy of the input is lent as well, of which its readers may make anything, and the output
// where it has what would land; nobody writes to a peer. A lane posts what it lends of its input before it copies it
// for itself; in place there is nothing to copy.
enum class DirectBy : uint8_t { kKernel, kLane };

// Two rounds: they use memory of their own, so a second one only shows that they do not disturb each other's clocks.
inline constexpr int kRoundsOfRaces = 2;

struct DirectUse {
  InPlace inPlace = InPlace::kNobody;
  DirectBy by = DirectBy::kKernel;
};

// Of each rank's steps, of each round of these: whether it was posted with an earlier one, as of
// engine::postsAheadOf(). Its readers know less then of what its rank has done. In place such a step writes nothing:
// its value is where it is going.
using Covered = std::vector<std::vector<std::vector<bool>>>;

// Adds what may go wrong over direct links, whichever of these uses is made of them. The schedules must have passed
// checkStructure and end at their depth. Segments may differ in length: then slots are missing, and with them the order
// that these would make.
void checkDirect(std::span<const Schedule> schedules, const Wiring& wiring, std::span<const DirectUse> uses,
                 Problems& problems, const Lengths& lengths = Lengths::uniform(kRoundsOfRaces),
                 const Covered& covered = {});

}  // namespace tutti::proof

// The ranks of a duel: processes and threads that time, in turn, what the plan chooses and what else it might have.
#pragma once
#include <string>
#include <vector>

#include "tune/sweep.h"

namespace tutti::tune {

// What all ranks are told alike.
struct DuelOrder {
  std::vector<Cell> cells;  // of one transport and number of ranks
  double seconds = 10;      // for a cell, as Match has it
};

// As one rank of a job, which the environment tells of (TUTTI_RANK and so on), or, where `threads`, as all ranks. For
// every algorithm there is a communicator that is forced to it; what the plan chooses runs on one that is not, by the
// prices of TUTTI_PROFILE. Rank 0 writes an outcome a line to standard output (toLine). Throws Error(kSystem) for what
// the library refuses.
void playDuel(const DuelOrder& order, bool threads);

}  // namespace tutti::tune

// What duels found out, put back into the sweep that they were about.
#pragma once
#include <string>
#include <vector>

#include "tune/match.h"

namespace tutti::tune {

// The lines that `duel -o` wrote. Throws Error(kInvalidArgument) with `path` in front for what cannot be read or has
// none.
std::vector<Outcome> readOutcomes(const std::string& path);

// A sweep times its algorithms one after the other, in processes of their own; a duel side by side. So where a choice
// lost, what it takes is its opponent's time by the median of their ratios, and not what the sweep has: the next fit
// then chooses by that. Of several opponents the one counts that leaves most. Where it won, the sweep stays.
// Whether any was about a cell of the sweep.
bool amend(Sweep& sweep, const std::vector<Outcome>& outcomes);

}  // namespace tutti::tune

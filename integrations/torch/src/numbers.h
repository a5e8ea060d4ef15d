// Statistics of a group as flat numbers. The names are those of tutti.Communicator.stats().
#pragma once
#include <map>
#include <string>

#include "communicator.h"
#include "tally.h"

namespace tutti_torch {

using Numbers = std::map<std::string, double>;

// What the library says of one of the group's communicators, added to what is there. `groupRanks`: the numbers in the
// group of its ranks.
void addTo(Numbers& all, const Communicator& comm, const std::vector<int>& groupRanks);
// What was called, and the sums and the bandwidth of all that is there.
void addTo(Numbers& all, const std::map<std::string, Count>& counts, int ranks);

}  // namespace tutti_torch

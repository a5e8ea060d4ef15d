// How the ranks of this process become members of one communicator.
#pragma once
#include <vector>

#include "perf/options.h"

namespace tutti::perf {

// The communicators of this process's ranks: consecutive ranks, the first being the process's number times their count.
// Threads and communicators per thread must be the same in every process. Throws Failure.
std::vector<tuttiComm_t> joinAll(const Options& options);

}  // namespace tutti::perf

// How the ranks of this process become members of one communicator.
#pragma once
#include <vector>

#include "perf/options.h"

namespace tutti::perf {

// A rank of this process. What is measured runs on `comm`; by `control`, which is for host memory, the ranks agree on
// when to begin and on what they saw. Without GPUs the two are the same.
struct Seat {
  tuttiComm_t comm = nullptr, control = nullptr;
};

// This process's ranks: consecutive ones, the first being the process's number times their count. Threads and
// communicators per thread must be the same in every process. Throws Failure.
std::vector<Seat> joinAll(const Options& options);

}  // namespace tutti::perf

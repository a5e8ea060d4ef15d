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

// To be called before anything else here. Throws Failure, in the library's words, for a value that it refuses: of an
// option, or of any variable. Then unsets the variables that an option replaces.
void settleSettings(const Options& options);

// The processes of this job in a communicator for host memory, through which they find others. The library says which
// they are, from what a launcher has set; where none has, this one is alone.
class Processes {
 public:
  // Throws Failure, also for half of what a launcher sets.
  explicit Processes(const Options& options);

  bool alone() const { return size_ == 1; }
  // To be called once, unless joinAll was.
  void leave();

 private:
  friend std::vector<Seat> joinAll(const Options& options, Processes& processes);
  using Comms = std::vector<tuttiComm_t>;

  // Process 0 makes the id of the larger communicator, and passes it around.
  Comms join(const std::vector<int>& devices, const tuttiConfig_t& config) const;
  // How many of the processes before this one are on the same host.
  int onThisHost() const;

  tuttiComm_t comm_ = nullptr;
  int rank_ = 0, size_ = 0;
};

// The ranks of a process that is the only one. Throws Failure.
std::vector<Seat> joinAlone(const Options& options);

// This process's ranks: consecutive ones, the first being the process's number times their count. Threads and
// communicators per thread must be the same in every process. Throws Failure. Leaves or takes over `processes`.
std::vector<Seat> joinAll(const Options& options, Processes& processes);

}  // namespace tutti::perf

// The algorithms that are compared: which, and whether their schedules were proved.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "schedule/algorithm.h"
#include "sim/simulate.h"

namespace tutti::simtool {

struct Candidates {
  std::vector<schedule::Algorithm> run;
  std::vector<std::string> leftOut;  // "name: reason"
  bool alone = false;                // there is nothing to compare: it may take its time, and has to succeed
};

// Those that the library would choose among; one that is asked for by name is run whatever may be said against it.
// Throws Error(kInvalidArgument) for a name that none has.
Candidates candidatesOf(const std::string& name, const sim::Cluster& cluster, Collective collective);

// Proves schedules before they are simulated: for every message of a collective the same, so once.
class Prover {
 public:
  // Steps of all ranks, and segments of all their outputs: the proof of more takes longer than one waits.
  static constexpr size_t kMostSteps = 600'000, kMostCells = 2'000'000;

  // Whether they were proved, being no more. Throws Error(kInternal) where they are wrong.
  bool proves(schedule::Algorithm algorithm, const sim::Cluster& cluster, const sim::Message& message);

 private:
  std::map<schedule::Algorithm, bool> proved_;
};

}  // namespace tutti::simtool

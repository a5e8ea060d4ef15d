// The ranks of tutti-doctor net: they join, tell each other what their hosts have, and measure what is between them.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "launch/launch.h"
#include "preflight/finding.h"
#include "preflight/host_report.h"

namespace tutti::doctor::net {

struct Wishes {
  std::chrono::milliseconds each{50};          // as Terms has it
  std::chrono::milliseconds patience{10'000};  // how long two ranks may take to connect, and be silent
  size_t mostRounds = 63;                      // of hosts, for each transport
};

struct Outcome {
  int ranks = 1;
  std::vector<preflight::HostReport> reports;  // one a host, in the order of their first ranks
  std::vector<preflight::PairResult> pairs;    // as they were measured
  std::vector<std::string> notes;              // what was not measured, and why
  std::string broken;                          // a rank was lost on the way, and what comes after is missing
};

// This host alone.
Outcome lookHere();

// As the rank that `launch` says. Everyone learns all. Throws Error where the ranks do not meet; what goes wrong
// afterwards is part of the outcome.
Outcome lookTogether(const control::LaunchInfo& launch, const Wishes& wishes);

}  // namespace tutti::doctor::net

// How a call would run, and why: what tuttiCommExplain tells.
#pragma once
#include <string>
#include <vector>

#include "plan/plan.h"
#include "team/links.h"
#include "team/team.h"

namespace tutti::comm {

struct Explanation {
  struct Candidate {
    std::string text;  // all of it, for people: "ring over 1 channel, predicted 12.3 us"
    std::string algorithm;
    std::string protocol;  // of kernels on GPUs; empty elsewhere
    int channels = 1;      // 0: there are none
    double predictedUs = 0;
    double linksUs = 0;  // beside that, in the first call, on host memory
  };
  // To ranks that are reached alike.
  struct Way {
    std::string transport;
    std::vector<int> ranks;
    bool sameHost = true;
    double latencyUs = 0, gigabytes = 0;  // as plans have it, and where they have it from; 0 and empty: they do not
    std::string pricedBy;
    std::vector<std::string> notFaster;  // "name: why not", of those that would cost less
  };

  Candidate choice;
  std::vector<Candidate> others;      // from the cheapest on
  std::vector<std::string> excluded;  // "name: reason"
  std::vector<Way> ways;
  std::string prices;   // whose they are
  std::string order{};  // of the ranks in rings and trees on GPUs, and where it comes from
};

Explanation::Candidate candidateOf(const plan::Choice& choice);

// From this rank to all others, by the transport that connects them or, as long as none does, by the one that is tried
// first. `prices`: as plans have them. Any thread.
std::vector<Explanation::Way> waysOf(const Team& team, const Links& links, const plan::Profile& prices);

// A line each: "chosen: ", "next: ", "not: ", "link: ", "ring order: ", "prices: ".
std::string textOf(const Explanation& explanation);

}  // namespace tutti::comm

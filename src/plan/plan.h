// The choice for one call: which algorithm, over how many channels. A small cost model; its prices are in one profile.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/slots.h"
#include "base/types.h"
#include "plan/profile.h"
#include "schedule/algorithm.h"
#include "schedule/rules.h"

namespace tutti::plan {

using schedule::Request;

// The communicator, as far as cost goes. Made once, the same on every rank (so that all choose alike).
struct ClusterModel : schedule::Scale {
  Profile prices;
  LinkCost local = costs::kShm, remote = costs::kTcpNetwork;  // between ranks of one host, and of different ones
  int machines = 0;                   // that the hosts are of, as containers are of one; 0: each is one
  std::string_view localOver;         // the transport of the former; "" where there is none
  uint32_t slotRoom = slots::kBytes;  // bytes that a slot of the links really has
};

struct Choice {
  schedule::Algorithm algorithm = schedule::Algorithm::kRing;
  int channels = 1;
  double predictedUs = 0;
  double setUpUs = 0;  // beside that, in the first call: its links (plan/set_up.h)
};

// "ring over 2 channels, predicted 12.3 us"
std::string describe(const Choice& choice);

struct Plan {
  Choice best{};
  std::vector<Choice> others{};         // the rest, cheapest first
  std::vector<std::string> excluded{};  // "name: reason"
};

// What a request does without, as `excluded` tells it: those that cannot do what is asked for, those that are not
// allowed and, where none of those that are is there, these.
std::vector<std::string> refusalsOf(const Request& request, schedule::Allowed allowed);

// Never fails: every collective has an algorithm that works for every size. `allowed` (from the configuration) narrows
// the choice; where none of those can do what is asked for, all count, and `excluded` says so.
Plan choose(const Request& request, const ClusterModel& machine, schedule::Allowed allowed, int forcedChannels);

}  // namespace tutti::plan

// The choice for one call: which algorithm, over how many channels. A small cost model; its prices are in one profile.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/slots.h"
#include "base/types.h"
#include "plan/profile.h"
#include "schedule/algorithm.h"

namespace tutti::plan {

using schedule::Request;

// The communicator, as far as cost goes. Made once, the same on every rank (so that all choose alike).
struct ClusterModel : schedule::Scale {
  Profile prices;
  LinkCost local = costs::kShm, remote = costs::kTcpNetwork;  // between ranks of one host, and of different ones
  std::string_view localOver;                                 // the transport of the former; "" where there is none
  uint32_t slotRoom = slots::kBytes;                          // bytes that a slot of the links really has
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
  Choice best;
  std::vector<Choice> others;         // the rest, cheapest first
  std::vector<std::string> excluded;  // "name: reason"
};

// Never fails: every collective has an algorithm that works for every size. `forced` (from the configuration) takes the
// choice of the algorithm away; it must be one that can do what is asked for.
Plan choose(const Request& request, const ClusterModel& machine, std::optional<schedule::Algorithm> forced,
            int forcedChannels);

}  // namespace tutti::plan

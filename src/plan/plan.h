// The choice for one call: which algorithm, over how many channels. A small cost model; its constants are in one file.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "schedule/schedule.h"

namespace tutti::plan {

// What the model needs to know about one kind of link.
struct LinkCost {
  double latencyUs = 0.3;   // a slot of a few bytes, from post to ready
  double bandwidthGBs = 7;  // a long message
};

// The communicator, as far as cost goes. Made once, the same on every rank (so that all choose alike).
struct Machine {
  int ranks = 1;
  int hosts = 1;
  int ranksPerHost = 1;     // of the fullest host
  double ranksPerCore = 1;  // of the most crowded host; above 1 the ranks take turns
  LinkCost local, remote;   // between ranks of one host, and of different ones
  uint32_t slotBytes = 128 << 10;
  uint32_t slotRoom = 64 << 10;  // bytes that a slot of the links really has
};

struct Request {
  Collective collective = Collective::kAllReduce;
  size_t bytes = 0;  // the whole message (kSplit); with a count a rank: one rank's part
};

struct Choice {
  schedule::Algorithm algorithm = schedule::Algorithm::kRing;
  int channels = 1;
  double predictedUs = 0;
};

struct Plan {
  Choice best;
  std::vector<Choice> others;         // the rest, cheapest first
  std::vector<std::string> excluded;  // "name: reason"
};

// Never fails: every collective has an algorithm that works for every size. `forced` (from the configuration) takes the
// choice of the algorithm away; it must be one that the collective has.
Plan choose(const Request& request, const Machine& machine, std::optional<schedule::Algorithm> forced,
            int forcedChannels);

// "ring" → kRing. Throws Error(kInvalidArgument) that lists the names.
schedule::Algorithm algorithmByName(std::string_view name);

}  // namespace tutti::plan

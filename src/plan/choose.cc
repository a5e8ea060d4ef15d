#include <algorithm>
#include <tuple>

#include "base/costs.h"
#include "base/error.h"
#include "plan/cost.h"
#include "plan/expected.h"
#include "plan/plan.h"
#include "plan/set_up.h"
#include "schedule/algorithm.h"

namespace tutti::plan {

namespace {

// Where it counts.
std::string describeSetUp(const Choice& choice) {
  if (setUpShareUs(choice.setUpUs) <= 0) return {};
  return fmt::format(", and {:.0f} ms for its links in the first call", choice.setUpUs / 1e3);
}

}  // namespace

std::string describe(const Choice& choice) {
  return fmt::format("{} over {} channel{}, predicted {:.1f} us{}", nameOf(choice.algorithm), choice.channels,
                     choice.channels == 1 ? "" : "s", choice.predictedUs, describeSetUp(choice));
}

using namespace costs;
using schedule::Algorithm;

namespace {

// Why an algorithm is not worth a comparison on this machine; empty when it is.
std::string objection(Algorithm algorithm, Collective collective, const ClusterModel& machine) {
  const schedule::AlgorithmRow& row = schedule::rowOf(algorithm);
  if (row.workload == nullptr) return "what it costs is not known; it is used where it is forced";
  if (row.objection != nullptr)
    if (std::string reason = row.objection(machine); !reason.empty()) return reason;
  if (row.linksToAll && machine.ranks - 1 > kMostLinks) {
    return fmt::format("it needs {} links a rank; more than {} cost too much memory", machine.ranks - 1, kMostLinks);
  }
  const size_t room = machine.slotRoom / kLargestElement;
  if (packsAllRanks(algorithm, collective) && static_cast<size_t>(machine.ranks) > room) {
    return fmt::format("a slot would carry a segment of each rank, and has room for {} elements", room);
  }
  return {};
}

std::string exclusion(Algorithm algorithm, std::string_view reason) {
  return fmt::format("{}: {}", schedule::nameOf(algorithm), reason);
}

// All lanes of a host communicator run on the thread that calls, and a second TCP stream between two ranks gained
// nothing (3.9 against 3.7 GB/s over loopback): more than one lane is for those who ask for it.
Choice priced(Algorithm algorithm, const Request& request, const ClusterModel& machine, int forcedChannels) {
  return {algorithm, std::max(1, forcedChannels), expectedUs(algorithm, request, machine),
          setUpUs(algorithm, request, machine)};
}

double costUs(const Choice& choice) noexcept { return choice.predictedUs + setUpShareUs(choice.setUpUs); }

// Sorts the candidates by what a call costs, its share of the set-up included, and moves the forced one, if any, to the
// front. Of two alike (2 ranks have one neighbour only, whatever the pattern) the one without a pipeline along ranks
// has the shorter schedule.
void rank(std::vector<Choice>& choices, std::optional<Algorithm> forced) {
  const auto key = [&](const Choice& choice) {
    return std::tuple(choice.algorithm != forced, costUs(choice), !schedule::rowOf(choice.algorithm).linksToAll);
  };
  std::stable_sort(choices.begin(), choices.end(), [&](const Choice& a, const Choice& b) { return key(a) < key(b); });
}

}  // namespace

Plan choose(const Request& request, const ClusterModel& machine, std::optional<Algorithm> forced, int forcedChannels) {
  Plan plan;
  std::vector<Choice> choices, unwise;
  for (const Algorithm algorithm : schedule::algorithmsFor(request.collective)) {
    if (!schedule::rowOf(algorithm).can(request)) {
      plan.excluded.push_back(exclusion(algorithm, "it does not add in the order of the ranks"));
      continue;
    }
    const std::string reason = algorithm == forced ? std::string() : objection(algorithm, request.collective, machine);
    if (!reason.empty()) plan.excluded.push_back(exclusion(algorithm, reason));
    (reason.empty() ? choices : unwise).push_back(priced(algorithm, request, machine, forcedChannels));
  }
  // What works, if badly, is better than nothing; send/receive has its own builder and no choice.
  if (choices.empty()) choices.swap(unwise), plan.excluded.clear();
  if (choices.empty()) choices.push_back(priced(Algorithm::kDirect, request, machine, forcedChannels));
  if (forced && !schedule::rowOf(*forced).has(request.collective)) {
    plan.excluded.push_back(exclusion(*forced, fmt::format("{} has no such algorithm", nameOf(request.collective))));
  }
  rank(choices, forced);
  plan.best = choices.front();
  plan.others.assign(choices.begin() + 1, choices.end());
  return plan;
}

}  // namespace tutti::plan

#include <algorithm>
#include <tuple>

#include "base/costs.h"
#include "base/error.h"
#include "base/settings.h"
#include "plan/cost.h"
#include "plan/plan.h"
#include "schedule/builders.h"

namespace tutti::plan {

using namespace costs;
using schedule::Algorithm;

namespace {

bool linksToAll(Algorithm algorithm) {
  return algorithm == Algorithm::kOneShot || algorithm == Algorithm::kTwoShot || algorithm == Algorithm::kDirect;
}

// Why an algorithm is not worth a comparison on this machine; empty when it is.
std::string objection(Algorithm algorithm, Collective collective, const Machine& machine) {
  if (algorithm == Algorithm::kHierarchical) {
    if (machine.hosts <= 1) return "all ranks are on one host";
    if (machine.ranksPerHost <= 1) return "every host has one rank only";
  }
  if (linksToAll(algorithm) && machine.ranks - 1 > kMostLinks) {
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

bool has(std::span<const Algorithm> algorithms, Algorithm algorithm) {
  return std::find(algorithms.begin(), algorithms.end(), algorithm) != algorithms.end();
}

// All lanes of a host communicator run on the thread that calls, and a second TCP stream between two ranks gained
// nothing (3.9 against 3.7 GB/s over loopback): more than one lane is for those who ask for it.
Choice priced(Algorithm algorithm, const Request& request, const Machine& machine, int forcedChannels) {
  return {algorithm, std::max(1, forcedChannels), predictUs(algorithm, request, machine)};
}

// Sorts the candidates by predicted time, and moves the forced one, if any, to the front. Of two alike (2 ranks have
// one neighbour only, whatever the pattern) the one without pipelining has the shorter schedule.
void rank(std::vector<Choice>& choices, std::optional<Algorithm> forced) {
  const auto key = [&](const Choice& choice) {
    return std::tuple(choice.algorithm != forced, choice.predictedUs, !linksToAll(choice.algorithm));
  };
  std::stable_sort(choices.begin(), choices.end(), [&](const Choice& a, const Choice& b) { return key(a) < key(b); });
}

}  // namespace

Plan choose(const Request& request, const Machine& machine, std::optional<Algorithm> forced, int forcedChannels) {
  const std::span<const Algorithm> algorithms = schedule::algorithmsFor(request.collective);
  Plan plan;
  std::vector<Choice> choices, unwise;
  for (Algorithm algorithm : algorithms) {
    const std::string reason = algorithm == forced ? std::string() : objection(algorithm, request.collective, machine);
    if (!reason.empty()) plan.excluded.push_back(exclusion(algorithm, reason));
    (reason.empty() ? choices : unwise).push_back(priced(algorithm, request, machine, forcedChannels));
  }
  // What works, if badly, is better than nothing; send/receive has its own builder and no choice.
  if (choices.empty()) choices.swap(unwise), plan.excluded.clear();
  if (choices.empty()) choices.push_back(priced(Algorithm::kDirect, request, machine, forcedChannels));
  if (forced && !has(algorithms, *forced)) {
    plan.excluded.push_back(exclusion(*forced, fmt::format("{} has no such algorithm", nameOf(request.collective))));
  }
  rank(choices, forced);
  plan.best = choices.front();
  plan.others.assign(choices.begin() + 1, choices.end());
  return plan;
}

Algorithm algorithmByName(std::string_view name) {
  std::string names;
  const std::string wanted = settings::lowered(std::string(name));
  for (int i = 0; i < schedule::kAlgorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    if (schedule::nameOf(algorithm) == wanted) return algorithm;
    names += fmt::format("{}{}", i == 0 ? "" : ", ", schedule::nameOf(algorithm));
  }
  throw Error(ErrorCode::kInvalidArgument, fmt::format("'{}' is no algorithm; choose one of: {}", name, names));
}

}  // namespace tutti::plan

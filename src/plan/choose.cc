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
  if (packsAllRanks(algorithm, collective, machine.ranks) && static_cast<size_t>(machine.ranks) > room) {
    return fmt::format("a slot would carry a segment of each rank, and has room for {} elements", room);
  }
  return {};
}

// What one who asked for it is told; empty: the algorithm may be chosen.
std::string refusal(Algorithm algorithm, const Request& request, schedule::Allowed allowed) {
  if (!schedule::rowOf(algorithm).can(request)) return "it does not add in the order of the ranks";
  return allowed.has(algorithm) ? "" : "not allowed by TUTTI_ALGO (config.algorithm)";
}

std::string exclusion(std::string_view what, std::string_view reason) { return fmt::format("{}: {}", what, reason); }

// Where nothing that is allowed is there. What is there, but cannot do what is asked for, has a line of its own.
void tellLack(std::vector<std::string>& lines, const Request& request, schedule::Allowed allowed) {
  const auto has = [&](Algorithm each) { return allowed.has(each); };
  if (!allowed.says() || std::ranges::any_of(schedule::algorithmsFor(request.collective), has)) return;
  const bool one = allowed.forced().has_value();
  lines.push_back(exclusion(textOf(allowed), fmt::format("{} has no such algorithm{}", nameOf(request.collective),
                                                         one ? "" : ", so that all that it has were weighed")));
}

// All lanes of a host communicator run on the thread that calls, and a second TCP stream between two ranks gained
// nothing (3.9 against 3.7 GB/s over loopback): more than one lane is for those who ask for it.
Choice priced(Algorithm algorithm, const Request& request, const ClusterModel& machine, int forcedChannels) {
  return {algorithm, std::max(1, forcedChannels), expectedUs(algorithm, request, machine),
          setUpUs(algorithm, request, machine)};
}

double costUs(const Choice& choice) noexcept { return choice.predictedUs + setUpShareUs(choice.setUpUs); }

// Sorts the candidates by what a call costs, its share of the set-up included. Of two alike (2 ranks have one neighbour
// only, whatever the pattern) the one without a pipeline along ranks has the shorter schedule.
void rank(std::vector<Choice>& choices) {
  const auto key = [&](const Choice& choice) {
    return std::tuple(costUs(choice), !schedule::rowOf(choice.algorithm).linksToAll);
  };
  std::stable_sort(choices.begin(), choices.end(), [&](const Choice& a, const Choice& b) { return key(a) < key(b); });
}

}  // namespace

std::vector<std::string> refusalsOf(const Request& request, schedule::Allowed allowed) {
  const schedule::Allowed counting = schedule::allowedFor(request, allowed);
  std::vector<std::string> lines;
  for (const Algorithm each : schedule::algorithmsFor(request.collective))
    if (const std::string no = refusal(each, request, counting); !no.empty())
      lines.push_back(exclusion(nameOf(each), no));
  tellLack(lines, request, allowed);
  return lines;
}

Plan choose(const Request& request, const ClusterModel& machine, schedule::Allowed allowed, int forcedChannels) {
  const schedule::Allowed counting = schedule::allowedFor(request, allowed);
  Plan plan{.excluded = refusalsOf(request, allowed)};
  std::vector<Choice> choices, unwise;
  std::vector<std::string> objections;
  for (const Algorithm algorithm : schedule::algorithmsFor(request)) {
    if (!counting.has(algorithm)) continue;
    const bool forced = counting.forced().has_value();
    const std::string reason = forced ? std::string() : objection(algorithm, request.collective, machine);
    if (!reason.empty()) objections.push_back(exclusion(nameOf(algorithm), reason));
    (reason.empty() ? choices : unwise).push_back(priced(algorithm, request, machine, forcedChannels));
  }
  // What works, if badly, is better than nothing; send/receive has its own builder and no choice.
  if (choices.empty()) choices.swap(unwise), objections.clear();
  if (choices.empty()) choices.push_back(priced(Algorithm::kDirect, request, machine, forcedChannels));
  plan.excluded.insert(plan.excluded.end(), objections.begin(), objections.end());
  rank(choices);
  plan.best = choices.front();
  plan.others.assign(choices.begin() + 1, choices.end());
  return plan;
}

}  // namespace tutti::plan

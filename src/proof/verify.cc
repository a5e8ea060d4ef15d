#include "proof/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "proof/races.h"
#include "proof/trace.h"

namespace tutti::proof {
namespace {

// Enough rounds that each link wraps and that every lag has a first, a middle and a last round.
int roundsFor(std::span<const Schedule> schedules, int depth) {
  int lag = 0;
  for (const Schedule& schedule : schedules) lag = std::max<int>(lag, schedule.maxLag);
  return depth + lag + 2;
}

bool finishes(std::span<const Schedule> schedules, const Wiring& wiring, int depth, Lengths lengths) {
  Simulator simulator(schedules, wiring, depth, lengths);
  return simulator.run([](int, const Step&, int) {});
}

void reportStop(std::span<const Schedule> schedules, const Simulator& simulator, Problems& problems) {
  for (size_t rank = 0; rank < schedules.size(); ++rank) {
    const auto& lane = simulator.lanes()[rank];
    if (lane.done) continue;
    problems.add(fmt::format("deadlock at depth {}: rank {} waits for ever in step {} of iteration {}",
                             simulator.depth(), rank, lane.step, lane.iteration));
  }
}

// Messages whose segments differ in length; none where all are alike whatever the message.
std::vector<Lengths> unevenOf(const Schedule& first, int rounds) {
  std::vector<Lengths> all;
  const bool vector = plainOf(first.collective) != first.collective && first.map == SegmentMap::kPerRank;
  if (vector) {
    for (uint64_t seed = 1; seed <= 4; ++seed) all.push_back(Lengths::random(rounds, seed));
  } else if (first.map == SegmentMap::kSplit && first.segments > 1) {
    all.push_back(Lengths::prefix(rounds, first.segments, 0, 1));
    all.push_back(Lengths::prefix(rounds, first.segments, first.segments / 2, 1));
    all.push_back(Lengths::prefix(rounds, first.segments, first.segments - 1, rounds / 2));
    if (first.maxLag > rounds / 2)
      all.push_back(Lengths::prefix(rounds, first.segments, first.segments - 1, rounds - 1));
  }
  return all;
}

// A run with other lengths skips the same slots on both sides (what is skipped follows from the segments that a slot
// carries, and sender and reader agree on them in the full run), so contents need no second look; but it waits
// differently, so that it ends has to be seen.
void checkUneven(std::span<const Schedule> schedules, const Wiring& wiring, int depth, Problems& problems) {
  for (const Lengths& lengths : unevenOf(schedules[0], roundsFor(schedules, depth))) {
    if (finishes(schedules, wiring, depth, lengths)) continue;
    problems.add(fmt::format("deadlock at depth {} when segments differ in length", depth));
    return;
  }
}

void checkDepth(std::span<const Schedule> schedules, const Wiring& wiring, int depth, Problems& problems) {
  const int stated = schedules[0].depth;
  const Lengths lengths = Lengths::uniform(roundsFor(schedules, stated));
  if (stated != depth && !finishes(schedules, wiring, stated, lengths)) {
    problems.add(fmt::format("deadlock at depth {}, which the schedule states to be enough", stated));
  } else if (stated > 1 && finishes(schedules, wiring, stated - 1, lengths)) {
    problems.add(fmt::format("the schedule states depth {}, but less is enough", stated));
  } else {
    checkUneven(schedules, wiring, stated, problems);
  }
}

// The widest use of peers' memory, out of place and in place, also where slots are missing and with them what they
// order.
void checkAllDirect(std::span<const Schedule> schedules, const Wiring& wiring, Problems& problems) {
  std::vector<InPlace> places{InPlace::kNobody, InPlace::kSome};
  if (schedules[0].directInPlace) places.push_back(InPlace::kAll);
  std::vector<DirectUse> all, lanes;
  for (const InPlace inPlace : places) {
    for (const DirectBy by : {DirectBy::kKernel, DirectBy::kLane}) all.push_back({inPlace, by});
    if (inPlace != InPlace::kSome) lanes.push_back({inPlace, DirectBy::kLane});
  }
  checkDirect(schedules, wiring, all, problems);
  const std::vector<Lengths> uneven = unevenOf(schedules[0], kRoundsOfRaces);
  if (!uneven.empty()) checkDirect(schedules, wiring, lanes, problems, uneven[uneven.size() / 2]);
}

}  // namespace

Verdict verify(std::span<const Schedule> schedules, int depth) {
  Problems problems;
  if (depth < 1) problems.add(fmt::format("a depth of {} slots cannot carry anything", depth));
  checkStructure(schedules, problems);
  if (problems.none()) {
    const Wiring wiring(schedules);
    const int rounds = roundsFor(schedules, depth);
    Trace trace(schedules, wiring, depth, rounds, problems);
    Simulator simulator(schedules, wiring, depth, Lengths::uniform(rounds));
    if (simulator.run([&](int rank, const Step& step, int round) { trace.execute(rank, step, round); })) {
      trace.checkResults();
    } else {
      reportStop(schedules, simulator, problems);
    }
    if (problems.none()) checkDepth(schedules, wiring, depth, problems);
    if (problems.none() && schedules.size() <= kMostDirect) checkAllDirect(schedules, wiring, problems);
  }
  Verdict verdict;
  verdict.ok = problems.none();
  verdict.problems = problems.take();
  return verdict;
}

int smallestDepth(std::span<const Schedule> schedules, int limit) {
  Problems problems;
  checkStructure(schedules, problems);
  if (!problems.none()) return 0;
  const Wiring wiring(schedules);
  for (int depth = 1; depth <= limit; ++depth) {
    if (finishes(schedules, wiring, depth, Lengths::uniform(roundsFor(schedules, depth)))) return depth;
  }
  return 0;
}

}  // namespace tutti::proof

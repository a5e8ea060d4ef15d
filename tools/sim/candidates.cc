#include "sim/candidates.h"

#include <fmt/format.h>

#include "base/error.h"
#include "plan/plan.h"
#include "proof/verify.h"

namespace tutti::simtool {
namespace {

// Whether they are so few that they were proved.
bool prove(schedule::Algorithm algorithm, const schedule::Shape& shape, int depth) {
  if (shape.size > sim::kMostRanksOfRuntime) return false;
  std::vector<schedule::Schedule> all;
  size_t steps = 0;
  for (int rank = 0; rank < shape.size && steps <= Prover::kMostSteps; ++rank) {
    all.push_back(schedule::build(algorithm, shape, rank));
    steps += all.back().steps.size();
  }
  if (steps > Prover::kMostSteps || all.size() * all[0].segments > Prover::kMostCells) return false;
  const proof::Verdict verdict = proof::verify(all, depth);
  if (verdict.ok) return true;
  throw Error(ErrorCode::kInternal, fmt::format("the schedules of {} on {} ranks are wrong, please report this: {}",
                                                nameOf(algorithm), shape.size, verdict.problems.front()));
}

}  // namespace

Candidates candidatesOf(const std::string& name, const sim::Cluster& cluster, Collective collective) {
  Candidates candidates;
  if (name != "all") {
    candidates.run.push_back(schedule::algorithmByName(name));
    candidates.alone = true;
    return candidates;
  }
  plan::ClusterModel machine;
  machine.ranks = cluster.ranks();
  machine.hosts = cluster.hosts;
  machine.ranksPerHost = cluster.ranksPerHost;
  machine.slotRoom = cluster.slotBytes;
  plan::Plan plan = plan::choose({.collective = collective}, machine, {}, 0);
  candidates.run.push_back(plan.best.algorithm);
  for (const plan::Choice& other : plan.others) candidates.run.push_back(other.algorithm);
  candidates.leftOut = std::move(plan.excluded);
  candidates.alone = candidates.run.size() == 1;
  return candidates;
}

bool Prover::proves(schedule::Algorithm algorithm, const sim::Cluster& cluster, const sim::Message& message) {
  const auto place = proved_.find(algorithm);
  if (place != proved_.end()) return place->second;
  const bool proved = prove(algorithm, sim::shapeOf(algorithm, cluster, message), static_cast<int>(cluster.depth));
  return proved_[algorithm] = proved;
}

}  // namespace tutti::simtool

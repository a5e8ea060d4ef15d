#include "plan/set_up.h"

#include <algorithm>
#include <array>

#include "base/costs.h"

namespace tutti::plan {

using schedule::Algorithm;

namespace {

int linksOfOne(Algorithm algorithm, const schedule::Scale& scale) {
  const int others = std::max(0, scale.ranks - 1);
  return schedule::rowOf(algorithm).linksToAll ? others : std::min(others, schedule::log2Ceil(scale.ranks));
}

}  // namespace

int linksOf(Algorithm algorithm, const Request& request, const schedule::Scale& scale) {
  std::array<schedule::Stage, 2> stages;
  const auto split = schedule::rowOf(algorithm).stages;
  if (split == nullptr || !split({plainOf(request.collective), request.bytes}, scale, stages))
    return linksOfOne(algorithm, scale);
  int links = 0;
  for (const schedule::Stage& stage : stages) links += linksOfOne(stage.algorithm, stage.scale);
  return links;
}

double setUpUs(Algorithm algorithm, const Request& request, const schedule::Scale& scale) {
  return linksOf(algorithm, request, scale) * costs::kLinkSetUpUs * std::max(1.0, scale.ranksPerCore);
}

double setUpShareUs(double setUpUs) noexcept {
  return std::max(0.0, setUpUs - costs::kUnnoticedSetUpUs) / costs::kCallsToCome;
}

}  // namespace tutti::plan

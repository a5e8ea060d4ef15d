#include "schedule/workload.h"

#include <algorithm>
#include <bit>

#include "base/costs.h"

namespace tutti::schedule {
namespace {

// What of a rank's bytes for all others goes to other hosts, of all ranks of the fullest one.
double crossingsOfAll(const Scale& scale) {
  const double others = std::max(0, scale.ranks - scale.ranksPerHost);
  return scale.ranksPerHost * others / std::max(1, scale.ranks - 1);
}

}  // namespace

int log2Ceil(int ranks) noexcept { return ranks <= 1 ? 0 : std::bit_width(static_cast<unsigned>(ranks - 1)); }

Pattern neighbours(const Scale& scale) {
  Pattern pattern;
  pattern.hops = pattern.messages = scale.ranks - 1;
  return pattern;
}

// The flows are one after the other, but ever farther apart: they meet in the network.
Pattern doubling(const Scale& scale) {
  Pattern pattern;
  pattern.hops = pattern.messages = log2Ceil(scale.ranks);
  pattern.fan = std::max(1, log2Ceil(scale.ranks));
  pattern.crossings = crossingsOfAll(scale);
  pattern.crossers = scale.ranksPerHost;
  return pattern;
}

Pattern everyone(const Scale& scale) {
  Pattern pattern;
  pattern.messages = pattern.fan = scale.ranks - 1;
  pattern.crossings = crossingsOfAll(scale);
  pattern.crossers = scale.ranksPerHost;
  return pattern;
}

Workload evenly(const Scale& scale, const Pattern& pattern, int passes, double bytes, double combined) {
  Workload work;
  work.steps = passes * pattern.hops;
  work.fan = pattern.fan;
  work.busiest = {bytes, bytes, combined, passes * pattern.messages};
  work.mean = work.busiest;
  work.skewed = (work.steps - 1) * std::min<double>(bytes / work.steps, scale.slotBytes);
  work.crossings = pattern.crossings;
  work.crossers = pattern.crossers;
  return work;
}

Workload repeating(Workload work, double repeated) {
  work.busiest.repeated = work.mean.repeated = std::max(0.0, repeated);
  return work;
}

Workload inParts(const Request& request, const Scale& scale, const Pattern& pattern) {
  const double bytes = double(request.bytes), others = scale.ranks - 1, part = others / scale.ranks * bytes;
  if (request.collective == Collective::kAllReduce) {
    Workload work = evenly(scale, pattern, 2, 2 * part, part);
    work.handed = bytes / scale.ranks / slots::kBytes;
    return work;
  }
  return evenly(scale, pattern, 1, others * bytes,
                request.collective == Collective::kReduceScatter ? others * bytes : 0);
}

void fillPipeline(Workload& work, const Scale& scale, double depth, double chunk) {
  work.steps = depth;
  work.filling = std::max(0.0, depth - 1) * std::min<double>(chunk, scale.slotBytes);
}

// What the others do at the far ends counts as well: the last of them ends after the root.
Workload star(const Scale& scale, double out, double in, double part, bool combines) {
  const int ranks = scale.ranks;
  const double all = double(ranks - 1) * part / ranks;
  Workload work;
  work.steps = 1;
  work.fan = in > 0 ? ranks - 1 : 1;
  work.busiest = {std::max(out, part), std::max(in, part), combines ? in : 0, double(ranks - 1)};
  work.mean = {all, all, combines ? all : 0, double(ranks - 1) / ranks};
  work.crossings = (ranks - scale.ranksPerHost) * part / std::max(1.0, work.busiest.sent);
  return work;
}

}  // namespace tutti::schedule

// The predicted time of an algorithm: the work that it gives to the ranks (schedule/workload.h), at this machine's
// prices.
#pragma once
#include "plan/plan.h"

namespace tutti::plan {

// What the algorithm gives the ranks to do; nothing where there is one rank only, or its cost is not known.
schedule::Workload workOf(schedule::Algorithm algorithm, const Request& request, const schedule::Scale& scale);

// Bytes of which ranks wait for the passage beside their own work.
inline double waitedFor(const schedule::Workload& work, const Profile& prices) noexcept {
  return work.filling + prices.skew * work.skewed;
}

// Whether one slot carries a segment of nearly every rank.
bool packsAllRanks(schedule::Algorithm algorithm, Collective collective, int ranks);

// Microseconds. Grows with bytes. Pure: the same arguments give the same bits on every rank of a homogeneous job.
double predictUs(schedule::Algorithm algorithm, const Request& request, const ClusterModel& machine);

}  // namespace tutti::plan

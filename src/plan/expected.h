// What a call is expected to take: what the model predicts, corrected by what was measured on such a machine.
#pragma once
#include "plan/plan.h"

namespace tutti::plan {

// Microseconds. Measured times of neighbouring sizes say by what factor the model is off; between two sizes the factor
// goes from one to the other, beyond the first and the last it stays. Without measurements that fit it is predictUs().
// Pure: the same arguments give the same bits on every rank of a homogeneous job.
double expectedUs(schedule::Algorithm algorithm, const Request& request, const ClusterModel& machine);

}  // namespace tutti::plan

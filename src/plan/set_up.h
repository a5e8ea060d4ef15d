// What it costs to make the links that an algorithm needs, in the first call, as far as it counts in the choice: shared
// out among the calls that are taken to come.
#pragma once
#include "plan/plan.h"

namespace tutti::plan {

// Links that a rank has at the most. Stages of two algorithms have their own each.
int linksOf(schedule::Algorithm algorithm, const Request& request, const schedule::Scale& scale);

// Microseconds until the links of all ranks stand, where none does yet. The ranks of a core make theirs in turn.
double setUpUs(schedule::Algorithm algorithm, const Request& request, const schedule::Scale& scale);

// What of it a call has to bear: nothing of what nobody would notice. Pure: alike on every rank, whatever links there
// are, since those are not.
double setUpShareUs(double setUpUs) noexcept;

}  // namespace tutti::plan

// The last calls of every rank as a table: a row a rank, a column a collective.
#pragma once
#include <string>

#include "doctor/records.h"

namespace tutti::doctor {

struct TimelineShape {
  int width = 100;  // characters a line
  int calls = 8;    // collectives at most; fewer where they do not fit
  int rows = 64;    // ranks at most
};

// `first`: ranks that must be shown even if there are more than fit.
std::string timeline(const Job& job, const std::vector<int>& first, const TimelineShape& shape);

}  // namespace tutti::doctor

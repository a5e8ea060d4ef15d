// The parts of a diagnosis: each looks for one thing, and adds what it finds.
#pragma once
#include <vector>

#include "doctor/diagnose.h"
#include "doctor/view.h"

namespace tutti::doctor {

using Findings = std::vector<Finding>;

// mismatches.cc: calls that should be the same and are not. Only the first collective that differs is told.
void findOtherCollectives(const View& view, Findings& findings);
void findOtherMessages(const View& view, Findings& findings);

// departures.cc: ranks that others blame, in the errors that stopped them.
void findDepartures(const View& view, Findings& findings);

// waits.cc: who waits for whom, and where that ends.
void findAbsent(const View& view, Findings& findings);
void findLonelyMessages(const View& view, Findings& findings);
void findChains(const View& view, Findings& findings);

// "its last call was all-reduce #16 (float, 1 MiB, sum), done 3.2 s before its record was written"
std::string lastWords(const View& view, int rank);

}  // namespace tutti::doctor

// What tutti-doctor net prints.
#pragma once
#include <string>
#include <vector>

#include "doctor/net/job.h"
#include "preflight/finding.h"

namespace tutti::doctor::net {

// Hosts, interfaces, RDMA ports, what was measured, and what to mend; lines of sentences at most `width` long.
std::string asText(const Outcome& outcome, const std::vector<preflight::Finding>& findings, size_t width);

// The same for programs: docs/doctor.md has the keys.
std::string asJson(const Outcome& outcome, const std::vector<preflight::Finding>& findings);

}  // namespace tutti::doctor::net

// What is wrong with hosts, or between them, in an operator's words.
#pragma once
#include <span>
#include <vector>

#include "preflight/finding.h"
#include "preflight/host_report.h"

namespace tutti::preflight {

// The worst first. `reports`: one a host. `pairs`: as many as were measured, none at the start of a job.
std::vector<Finding> findingsOf(const std::vector<HostReport>& reports, const std::vector<PairResult>& pairs = {});

// From kWarning on there is something to mend.
bool needsMending(std::span<const Finding> findings);

}  // namespace tutti::preflight

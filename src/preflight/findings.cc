#include "preflight/findings.h"

#include <algorithm>
#include <functional>

#include "preflight/finders.h"

namespace tutti::preflight {

std::vector<Finding> findingsOf(const std::vector<HostReport>& reports, const std::vector<PairResult>& pairs) {
  std::vector<Finding> findings;
  findSlowPairs(reports, pairs, findings);
  findInterfaces(reports, findings);
  findRdma(reports, findings);
  findLimits(reports, findings);
  findOddOnes(reports, findings);
  std::ranges::stable_sort(findings, std::greater(), &Finding::severity);
  return findings;
}

bool needsMending(std::span<const Finding> findings) {
  return std::ranges::any_of(findings, [](const Finding& one) { return one.severity >= Severity::kWarning; });
}

}  // namespace tutti::preflight

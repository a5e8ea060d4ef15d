// The parts of findingsOf(): each looks for faults of one kind.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "preflight/finding.h"
#include "preflight/host_report.h"

namespace tutti::preflight {

using Reports = std::vector<HostReport>;
using Findings = std::vector<Finding>;

// What one host lacks by itself: memory to lock, open files, processors, memory, a way between NIC and GPU.
void findLimits(const Reports& reports, Findings& findings);
// Interfaces: none, down, slow, of another size or family than those of others.
void findInterfaces(const Reports& reports, Findings& findings);
// RDMA: ports that are down, slow or without an address that others can use.
void findRdma(const Reports& reports, Findings& findings);
// Hosts that are not like the others: version, clock.
void findOddOnes(const Reports& reports, Findings& findings);
// Pairs that do not work, or are far slower than most.
void findSlowPairs(const Reports& reports, const std::vector<PairResult>& pairs, Findings& findings);

// "n1, n2 and 5 more"
std::string namesOf(const std::vector<std::string>& names);

// One finding of many hosts that lack the same: they are told together.
class Together {
 public:
  void add(const std::string& what, const std::string& who) { hosts_[what].push_back(who); }
  void tell(Severity severity, const std::string& fix, Findings& findings) const;

 private:
  std::map<std::string, std::vector<std::string>> hosts_;
};

// The value that most have; of several the least. `values` is not empty.
template <class T>
T mostCommon(const std::vector<T>& values) {
  std::map<T, size_t> counts;
  for (const T& value : values) ++counts[value];
  auto most = counts.begin();
  for (auto one = counts.begin(); one != counts.end(); ++one)
    if (one->second > most->second) most = one;
  return most->first;
}

}  // namespace tutti::preflight

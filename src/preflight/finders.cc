#include "preflight/finders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::preflight {

std::string namesOf(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  if (names.size() <= kMost) return fmt::format("{}", fmt::join(names, ", "));
  const std::vector<std::string> first(names.begin(), names.begin() + kMost);
  return fmt::format("{} and {} more", fmt::join(first, ", "), names.size() - kMost);
}

void Together::tell(Severity severity, const std::string& fix, Findings& findings) const {
  for (const auto& [what, hosts] : hosts_) findings.push_back({severity, namesOf(hosts), what, fix});
}

}  // namespace tutti::preflight

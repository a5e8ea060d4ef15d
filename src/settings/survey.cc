#include "settings/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/spelling.h"

namespace tutti::settings {
namespace {

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::toupper(c); });
  return result;
}

}  // namespace

std::vector<Shown> describeAll(const Environment& environment) {
  std::vector<Shown> rows;
  for (const Setting& one : kTable) {
    Shown shown{&one, environment.valueOf(one)};
    if (shown.value && one.type == Type::kSecret) shown.value = "(set, not shown)";
    rows.push_back(std::move(shown));
  }
  return rows;
}

const Setting* nearestSetting(std::string_view name) {
  const std::string wanted = upper(name);
  const Setting* nearest = nullptr;
  size_t least = std::max<size_t>(1, (name.size() - std::min(name.size(), kPrefix.size())) / 3) + 1;
  for (const Setting& one : kTable) {
    if (one.section == For::kTests) continue;
    const size_t far = spellingDistance(wanted, one.name);
    if (far < least) nearest = &one, least = far;
  }
  return nearest;
}

std::vector<std::string> strangeNames(const Environment& environment) {
  std::vector<std::string> lines;
  for (const std::string& name : environment.names(kPrefix)) {
    if (findSetting(name) != nullptr || name.starts_with(kTestPrefix)) continue;
    const Setting* near = nearestSetting(name);
    lines.push_back(near ? fmt::format("{} is not a setting; did you mean {}?", name, near->name)
                         : fmt::format("{} is not a setting; docs/settings.md lists them", name));
  }
  return lines;
}

}  // namespace tutti::settings

// What an environment sets of tutti's, and what in it only looks like tutti's.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settings/settings.h"

namespace tutti::settings {

// One row of what `tutti-doctor env` shows: the setting and, when it is set, its value; that of a secret is masked.
struct Shown {
  const Setting* setting;
  std::optional<std::string> value;
};
std::vector<Shown> describeAll(const Environment& environment);

// The setting whose name takes the fewest insertions, deletions, replacements and swaps of neighbours to reach; null
// when none is near.
const Setting* nearestSetting(std::string_view name);

// A line for each TUTTI_* variable of the environment that is in no row: "TUTTI_TRANPORT is not a setting; ...".
std::vector<std::string> strangeNames(const Environment& environment);

}  // namespace tutti::settings

// Measured times as they stand in a profile: of each operation at one place a list of sizes, and of each algorithm as
// many times.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/measured.h"

namespace tutti::plan {

nlohmann::ordered_json jsonOf(const Measurements& measured);

// Throws Error(kInvalidArgument), with `source` in front, for what is of another form, or what no machine has measured.
Measurements measuredFrom(const nlohmann::ordered_json& json, const std::string& source);

}  // namespace tutti::plan

// Who am I, according to the launcher's environment?
#pragma once
#include <optional>
#include <string>

#include "launch/launch.h"
#include "settings/settings.h"

namespace tutti::control {

// Reads the environment. Variables and precedence are in launcher_table.cc. Throws Error(kInvalidUsage) that lists what
// was looked for when no launcher is found, and for contradictions; Error(kInvalidArgument) for what is no number.
LaunchInfo readLaunch(const settings::Environment& environment = {});

// What the user has given for a secret: the text of TUTTI_SECRET or TUTTI_SECRET_FILE. Throws Error(kInvalidUsage) for
// both, and for a file that is not to be trusted.
std::optional<std::string> readSecret(const settings::Environment& environment = {});

}  // namespace tutti::control

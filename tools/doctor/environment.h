// tutti-doctor env: the settings as this shell has them, and what is wrong with them.
#pragma once
#include <string>
#include <vector>

#include "settings/settings.h"

namespace tutti::doctor {

// A row for each setting: its name, its value, its default.
std::string settingsTable(const settings::Environment& environment);

// A line for each value that the library would refuse, in its words, and for each TUTTI_* name that is no setting. To
// be called where nothing else runs: the parsers read the process's environment, so each setting is put there alone.
std::vector<std::string> settingsTroubles(const settings::Environment& environment);

}  // namespace tutti::doctor

// Files of settings: what an operator says once for all jobs of a host, or a user for all of theirs.
//
// A line is NAME=VALUE, as it would be in the environment; white space around either does not count, and a line that is
// empty or begins with # says nothing. As with NCCL, TUTTI_CONF_FILE names a file that is read instead of
// ~/.tutti.conf; /etc/tutti.conf comes after it. The first that names a variable counts, and the environment before all
// of them, also where the variable is there and empty.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::settings {

// What files say, and what is wrong with them, in words.
struct FileSettings {
  std::map<std::string, std::string> values;
  std::vector<std::string> problems;
  std::vector<std::string> read;  // the files that are there
  std::string refusal;            // why the one that TUTTI_CONF_FILE names is not read; else empty
};

// Adds what the text of a file says of names that are not there yet. `path` is for the problems.
void addSettings(std::string_view text, const std::string& path, FileSettings& all);

// Where to look: the values of TUTTI_CONF_FILE and HOME.
struct SettingsFiles {
  std::string asked, home;
  friend bool operator==(const SettingsFiles&, const SettingsFiles&) = default;
};
FileSettings readSettings(const SettingsFiles& files);

}  // namespace tutti::settings

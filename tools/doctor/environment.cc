#include "doctor/environment.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "launch/launcher.h"
#include "net/network.h"
#include "process/log.h"
#include "settings/settings_file.h"
#include "settings/survey.h"
#include "team/config.h"

namespace tutti::doctor {
namespace {

using settings::Environment;
using settings::kTable;
using Values = std::map<std::string, std::string>;
using Lines = std::vector<std::string>;

// The setting of one row, where it is a number.
template <size_t row>
void parseNumber() {
  constexpr settings::Type type = kTable[row].type;
  constexpr bool isNumber =
      type == settings::Type::kNumber || type == settings::Type::kMilliseconds || type == settings::Type::kSwitch;
  if constexpr (isNumber)
    if (constexpr settings::Name name(kTable[row].name); settings::find(name)) settings::number(name);
}

template <size_t... rows>
void parseNumbers(std::index_sequence<rows...>) {
  (parseNumber<rows>(), ...);
}

// What reads settings, whatever else is set.
void parseAll() {
  parseNumbers(std::make_index_sequence<kTable.size()>());
  comm::Config::fromEnvironment();
  Network::fromEnvironment();
}

// The same twice is one trouble: half a set of a launcher's, for one.
void tryTo(const std::function<void()>& parse, Lines& lines) {
  try {
    parse();
  } catch (const std::exception& error) {
    if (std::ranges::find(lines, error.what()) == lines.end()) lines.emplace_back(error.what());
  }
}

// Who this process is depends on all of the settings together, and on a launcher's variables.
void tryLauncher(Lines& lines) {
  if (!settings::find("TUTTI_LAUNCHER")) ::setenv("TUTTI_LAUNCHER", "auto-or-none", 1);
  tryTo([] { control::readLaunch(); }, lines);
}

// The text as it is in the environment beside a line that does not tell which variable it is about.
std::string named(const std::string& name, const std::string& value, const std::string& line, bool isSecret) {
  if (line.starts_with(name + "=")) return line;
  const std::string lead = name + ": ";
  return fmt::format("{}={}: {}", name, isSecret ? "(set, not shown)" : value,
                     line.starts_with(lead) ? line.substr(lead.size()) : line);
}

Values settingsIn(const Environment& environment) {
  Values values;
  for (const settings::Setting& setting : kTable)
    if (const auto value = environment.valueOf(setting)) values.emplace(setting.name, *value);
  return values;
}

// A variable that is there and empty also hides what a file says.
void tryAlone(const Values& values, Lines& lines) {
  for (const settings::Setting& setting : kTable) ::setenv(setting.name, "", 1);
  for (const auto& [name, value] : values) {
    Lines found;
    ::setenv(name.c_str(), value.c_str(), 1);
    tryTo(parseAll, found);
    ::setenv(name.c_str(), "", 1);
    const bool isSecret = settings::findSetting(name)->type == settings::Type::kSecret;
    for (const std::string& line : found) lines.push_back(named(name, value, line, isSecret));
  }
  for (const settings::Setting& setting : kTable) ::unsetenv(setting.name);
  for (const auto& [name, value] : values) ::setenv(name.c_str(), value.c_str(), 1);
}

}  // namespace

std::string settingsTable(const Environment& environment) {
  constexpr const char* kRow = "{:<28} {:<28} {:<28}\n";
  std::string text = fmt::format(kRow, "setting", "value", "default");
  for (const auto& [setting, value] : settings::describeAll(environment)) {
    if (setting->section == settings::For::kTests) continue;
    text += fmt::format(kRow, setting->name, value.value_or("-"), *setting->fallback ? setting->fallback : "-");
  }
  for (const std::string& file : settings::fileSettings().read) text += fmt::format("with the settings of {}\n", file);
  return text;
}

Lines settingsTroubles(const Environment& environment) {
  Lines lines = settings::strangeNames(environment);
  const Lines& problems = settings::fileSettings().problems;
  lines.insert(lines.end(), problems.begin(), problems.end());
  for (const std::string& name : environment.names(settings::kPrefix))  // told here, and not by the parsers again
    if (settings::findSetting(name) == nullptr) ::unsetenv(name.c_str());
  Values values = settingsIn(environment);
  if (const auto level = environment.find("TUTTI_DEBUG"); level && !log::levelByName(*level))
    lines.push_back(
        fmt::format("TUTTI_DEBUG={}: choose one of {}", *level, settings::findSetting("TUTTI_DEBUG")->values));
  ::setenv("TUTTI_DEBUG", "off", 1);  // nothing is to be told twice
  values.erase("TUTTI_DEBUG");
  tryAlone(values, lines);
  tryLauncher(lines);
  return lines;
}

}  // namespace tutti::doctor

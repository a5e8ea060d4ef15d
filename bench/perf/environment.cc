#include "perf/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>

#include "launch/launcher_names.h"
#include "perf/failure.h"
#include "settings/settings_table.h"

namespace tutti::perf {
namespace {

constexpr std::string_view kMask = "(set, not shown)";
constexpr double kMostGBs = 1e6;

std::string_view variableOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }

bool saysWho(std::string_view name) {
  for (const char* const own : {"TUTTI_LAUNCHER", "TUTTI_RANK", "TUTTI_SIZE", "TUTTI_PERF_PARENT"})
    if (name == own) return true;
  return control::isLauncherName(name);
}

// With whom and where, of those who have been told who they are. How long to wait for the others is no answer to that.
bool saysWhere(std::string_view name) {
  const settings::Setting* setting = settings::findSetting(name);
  return setting != nullptr && setting->section == settings::For::kJoining && name != "TUTTI_JOIN_TIMEOUT_MS" &&
         !saysWho(name);
}

bool isSet(std::string_view entry) { return entry.size() > variableOf(entry).size() + 1; }  // empty is not set

// A name that is no setting's, or a level of the log that there is not: the library goes on without it.
bool isStrange(const std::string& entry) {
  const std::string_view name = variableOf(entry);
  if (!name.starts_with(settings::kPrefix) || name.starts_with(settings::kTestPrefix)) return false;
  const settings::Setting* setting = settings::findSetting(name);
  if (setting == nullptr || name != "TUTTI_DEBUG" || !isSet(entry)) return setting == nullptr;
  std::string value = entry.substr(name.size() + 1);
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
  return fmt::format(", {}, ", setting->values).find(fmt::format(", {}, ", value)) == std::string::npos;
}

double bandwidthFrom(const char* name, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(value >= 0 && value <= kMostGBs))
    throw UsageError(fmt::format("{}={}: expected GB/s, a number from 0 to {:.0f}", name, text, kMostGBs));
  return value;
}

}  // namespace

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

Entries wholeEnvironment() {
  Entries entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

Entries shownOf(const Entries& entries) {
  Entries shown;
  for (const std::string& entry : entries) {
    const std::string_view name = variableOf(entry);
    const settings::Setting* setting = settings::findSetting(name);
    if (setting != nullptr && setting->type == settings::Type::kSecret)
      shown.push_back(fmt::format("{}={}", name, kMask));
    else if (setting != nullptr || control::isLauncherName(name))
      shown.push_back(entry);
  }
  return shown;
}

Entries withoutLaunchers(const Entries& entries) {
  Entries kept;
  for (const std::string& entry : entries)
    if (!saysWho(variableOf(entry)) && !saysWhere(variableOf(entry))) kept.push_back(entry);
  return kept;
}

std::string placesOf(const Entries& entries) {
  std::string names;
  for (const std::string& entry : entries)
    if (isSet(entry) && saysWhere(variableOf(entry)))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", variableOf(entry));
  return names;
}

bool nobodyCounts(const Entries& entries) { return std::ranges::find(entries, "TUTTI_LAUNCHER=none") != entries.end(); }

bool nobodySaysWho(const Entries& entries) {
  const auto isSilent = [](const std::string& entry) { return !isSet(entry) || !saysWho(variableOf(entry)); };
  return std::ranges::all_of(entries, isSilent) || nobodyCounts(entries);
}

Entries withoutStrange(const Entries& entries) {
  Entries kept;
  for (const std::string& entry : entries)
    if (!isStrange(entry)) kept.push_back(entry);
  return kept;
}

std::optional<double> minimumBandwidth() {
  for (const char* name : {"TUTTI_TESTS_MIN_BW", "NCCL_TESTS_MIN_BW"})
    if (const auto text = variable(name)) return bandwidthFrom(name, *text);
  return std::nullopt;
}

}  // namespace tutti::perf

#include "perf/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/settings_table.h"
#include "control/launcher_names.h"
#include "perf/failure.h"

namespace tutti::perf {
namespace {

constexpr std::string_view kMask = "(set, not shown)";
constexpr double kMostGBs = 1e6;

std::string_view variableOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }

// How long to wait for the others is no answer to who and where.
bool saysWhoAndWhere(std::string_view name) {
  if (control::isLauncherName(name) || name == "TUTTI_PERF_PARENT") return true;
  const settings::Setting* setting = settings::findSetting(name);
  return setting != nullptr && setting->section == settings::For::kJoining && name != "TUTTI_JOIN_TIMEOUT_MS";
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
    if (!saysWhoAndWhere(variableOf(entry))) kept.push_back(entry);
  return kept;
}

bool nobodySaysWho(const Entries& entries) {
  return std::ranges::all_of(entries,
                             [&](const std::string& entry) {
                               const std::string_view name = variableOf(entry);
                               return entry.size() == name.size() + 1 || !saysWhoAndWhere(name);  // empty is not set
                             }) ||
         std::ranges::find(entries, "TUTTI_LAUNCHER=none") != entries.end();
}

Entries withoutStrangeNames(const Entries& entries) {
  Entries kept;
  for (const std::string& entry : entries) {
    const std::string_view name = variableOf(entry);
    const bool ours = name.starts_with(settings::kPrefix) && !name.starts_with(settings::kTestPrefix);
    if (!ours || settings::findSetting(name) != nullptr) kept.push_back(entry);
  }
  return kept;
}

std::optional<double> minimumBandwidth() {
  for (const char* name : {"TUTTI_TESTS_MIN_BW", "NCCL_TESTS_MIN_BW"})
    if (const auto text = variable(name)) return bandwidthFrom(name, *text);
  return std::nullopt;
}

}  // namespace tutti::perf

#include "settings/settings_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/spelling.h"
#include "process/log.h"
#include "settings/settings.h"

namespace tutti::settings {
namespace {

constexpr For kSections[] = {For::kJoining, For::kNetwork, For::kRunning, For::kDiagnosis, For::kPrograms, For::kTests};

const char* titleOf(For section) {
  switch (section) {
    case For::kJoining:
      return "Who this process is, and where the ranks meet";
    case For::kNetwork:
      return "Sockets";
    case For::kRunning:
      return "How operations run";
    case For::kDiagnosis:
      return "What is told";
    case For::kPrograms:
      return "Read by the measuring programs";
    case For::kTests:
      break;
  }
  return "Set by the tests and the commands in `tools/`";
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::toupper(c); });
  return result;
}

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

}  // namespace

std::string rangeOf(const Setting& setting) {
  const std::string values = setting.values;
  const auto with = [&](const std::string& type) { return values.empty() ? type : type + "; " + values; };
  switch (setting.type) {
    case Type::kNumber:
      return with(fmt::format("whole number, {} to {}", setting.low, setting.high));
    case Type::kMilliseconds:
      return with(fmt::format("milliseconds, {} to {}", setting.low, setting.high));
    case Type::kSwitch:
      return "0 or 1";
    case Type::kPath:
      return with("path");
    case Type::kText:
    case Type::kSecret:
      break;
  }
  return values.empty() ? "text" : values;
}

std::vector<Shown> describeAll(const Environment& environment) {
  std::vector<Shown> rows;
  for (const Setting& one : kTable) {
    Shown shown{&one, environment.valueOf(one)};
    if (shown.value && one.type == Type::kSecret) shown.value = "(set, not shown)";
    rows.push_back(std::move(shown));
  }
  return rows;
}

std::string asMarkdown() {
  std::string text =
      "# Settings\n\nEnvironment variables that tutti reads. This page is made from the table in\n"
      "`src/settings/settings_table.h` by the target `settings-doc`; change it there.\n\n"
      "**The environment wins.** A variable that is set overrides the field of a program's `tuttiConfig_t` that means "
      "the\n"
      "same; `TUTTI_DEBUG=info` names what was overridden. A variable that is empty counts as not set. A `TUTTI_*`\n"
      "variable that is not listed here is reported by rank 0, with the nearest name, when the first communicator is\n"
      "made; but for names that begin with `TUTTI_TEST_`, which belong to the tests. A program that runs with\n"
      "privileges which whoever started it has not (set-user-id) reads no variable at all.\n"
      "`NCCL_*` variables are not read, but for the one of nccl-tests that is named below; where one is set, rank 0 "
      "names\n"
      "the one of tutti's that does the same.\n";
  for (const For section : kSections) {
    text += fmt::format("\n## {}\n\n| variable | values | default | |\n|---|---|---|---|\n", titleOf(section));
    for (const Setting& one : kTable) {
      if (one.section != section) continue;
      const std::string fallback = *one.fallback ? fmt::format("`{}`", one.fallback) : "";
      text += fmt::format("| `{}` | {} | {} | {} |\n", one.name, cell(rangeOf(one)), fallback, cell(one.help));
    }
  }
  return text;
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

void warnOfStrangeSettings() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const std::string& line : strangeNames(Environment())) log::warn("{}", line);
    const std::string level = text("TUTTI_DEBUG");
    if (!log::levelByName(level))
      log::warn("TUTTI_DEBUG={}: choose one of {}; going on with warn", level, findSetting("TUTTI_DEBUG")->values);
  });
}

}  // namespace tutti::settings

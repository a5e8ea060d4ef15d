#include "settings/settings_table.h"

#include <fmt/format.h>

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

std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
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

std::string asMarkdown() {
  std::string text =
      "# Settings\n\nEnvironment variables that tutti reads. This page is made from the table in\n"
      "`src/settings/settings_table.h` by the target `settings-doc`; change it there.\n\n"
      "**The environment wins.** A variable that is set overrides the field of a program's `tuttiConfig_t` that means "
      "the\n"
      "same; `TUTTI_DEBUG=info` names what was overridden. A variable that is empty counts as not set, whatever a file "
      "says. A file may "
      "hold\n"
      "settings, too: see `TUTTI_CONF_FILE`. A `TUTTI_*`\n"
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

}  // namespace tutti::settings

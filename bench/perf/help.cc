#include "perf/help.h"

#include <sstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tutti/tutti.h"

namespace tutti::perf {
namespace {

constexpr size_t kWidth = 80, kColumn = 27;

// Appends `text`, broken at blanks, with `indent` blanks before each line but the first, which goes on at `column`.
void wrap(std::string& out, const std::string& text, size_t column, size_t indent) {
  std::istringstream words(text);
  bool first = true;
  for (std::string word; words >> word; first = false) {
    if (!first && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  out += '\n';
}

void addOption(std::string& out, const CLI::Option& option) {
  std::string names = "  " + option.get_name(false, true);
  if (!option.get_option_text().empty()) names += " " + option.get_option_text();
  if (names.size() + 2 > kColumn)
    names += "\n" + std::string(kColumn, ' ');
  else
    names.resize(kColumn, ' ');
  out += names;
  wrap(out, option.get_description(), kColumn, kColumn);
}

std::string examplesOf(const std::string& program) {
  return fmt::format(
      "\nExamples\n"
      "  {0} --ranks 4 -b 8 -e 64M -f 2\n"
      "      four processes on this host, sizes from 8 bytes to 64 MiB\n"
      "  {0} -t 4 -b 1K -e 1M -f 4 -d all\n"
      "      four threads of one process, every data type\n"
      "  {0} --ranks 2 --transport tcp -e 1G -b 1G -n 5 -J out.json\n"
      "      over TCP, and a report in out.json\n"
      "  mpirun -np 4 {0} -b 1M -e 1M -I -n 100\n"
      "      processes of a launcher, and how much the iterations differ\n"
      "\nWhat the report of -J holds: docs/json.md. Settings of the library, such as\n"
      "TUTTI_DEBUG=info: docs/settings.md. --transport, --algo and -T win over\n"
      "TUTTI_TRANSPORT, TUTTI_ALGO and TUTTI_OPERATION_TIMEOUT_MS, and --device, given\n"
      "or not, over TUTTI_DEVICE. Values that are no values are refused all the same.\n",
      program);
}

std::string numbersOf(int code) { return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100); }

}  // namespace

std::string helpOf(const CLI::App& app, const std::string& program) {
  std::string out = fmt::format("usage: {} [OPTIONS]\n\n", program);
  wrap(out, app.get_description(), 0, 0);
  std::string group;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() != group) out += fmt::format("\n{}\n", group = option->get_group());
    addOption(out, *option);
  }
  return out + examplesOf(program);
}

std::string versionOf(const std::string& program) {
  int library = 0;
  tuttiGetVersion(&library);
  std::string text = fmt::format("{} of tutti {}", program, numbersOf(TUTTI_VERSION_CODE));
  if (library != TUTTI_VERSION_CODE) text += fmt::format(", with the library {}", numbersOf(library));
  return text + "\n";
}

}  // namespace tutti::perf

// tutti-doctor: says where the ranks of a job parted, from the records that they left.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/version.h"
#include "complain.h"
#include "doctor/diagnose.h"
#include "doctor/environment.h"
#include "doctor/net/command.h"
#include "doctor/records.h"
#include "doctor/timeline.h"
#include "doctor/trace.h"
#include "doctor/view.h"
#include "doctor/words.h"
#include "flushed.h"
#include "settings/settings.h"

namespace tutti::doctor {
namespace {

constexpr size_t kMostProse = 100;  // characters of a line that is read, not scanned

enum Status : int { kHealthy = 0, kDiverged = 1, kTrouble = 2 };

struct Options {
  std::vector<std::string> paths;
  std::string trace;
  TimelineShape shape;
  size_t proseWidth = 0;
};

int terminalWidth() {
  constexpr int kDefault = 120;  // no terminal
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kDefault;
}

std::string summary(const Job& job, const View& view) {
  const auto counted = [](size_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); };
  const std::string text =
      fmt::format("communicator {}{}: {}, {}", job.communicator, job.name.empty() ? "" : " (" + job.name + ")",
                  counted(static_cast<size_t>(job.size), "rank"), counted(job.records.size(), "record"));
  return view.missing().empty() ? text : fmt::format("{}; none of {}", text, namesOf(view.missing()));
}

bool report(const Job& job, const Options& options) {
  const View view(job);
  const Diagnosis diagnosis = diagnose(job);
  fmt::print("{}", wrapped(summary(job, view), options.proseWidth));
  const char* lead = diagnosis.healthy() ? "Healthy: " : "First divergence: ";
  for (const Finding& finding : diagnosis.findings) {
    fmt::print("{}", wrapped(fmt::format("{}{}.", lead, finding.text), options.proseWidth));
    lead = "Also: ";
  }
  fmt::print("\n{}", timeline(job, diagnosis.findings.front().blamed, options.shape));
  return diagnosis.healthy();
}

void complain(const BadRecord& error) {
  std::fflush(stdout);
  tools::complain("tutti-doctor: {}\n", error.what());
}

// One bad file is no reason to ignore the others.
std::vector<Record> readAll(const std::vector<std::string>& files, int& status) {
  std::vector<Record> records;
  for (const std::string& file : files) try {
      records.push_back(readRecord(file));
    } catch (const BadRecord& error) {
      complain(error);
      status = kTrouble;
    }
  return records;
}

// It may be a record, or somebody's work: what is there stays, unless it is no file, such as a pipe.
void refuseToReplace(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored))
    throw BadRecord(path, "is there already: the trace would replace it. Name another file, or remove this one");
}

void writeTrace(const std::vector<Job>& jobs, const std::string& path) {
  refuseToReplace(path);
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << toTrace(jobs);
  file.close();
  if (file) return;
  const std::string why = std::strerror(errno);
  std::error_code ignored;  // half a trace is none; a device stays
  if (std::filesystem::is_regular_file(path, ignored)) std::filesystem::remove(path, ignored);
  throw BadRecord(path, "the trace cannot be written there: " + why);
}

int diagnoseFiles(const Options& options) {
  int status = kHealthy;
  if (!options.trace.empty()) refuseToReplace(options.trace);
  const std::vector<Job> jobs = groupRecords(readAll(findRecords(options.paths), status));
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (i > 0) fmt::print("\n");
    if (!report(jobs[i], options)) status = std::max<int>(status, kDiverged);
  }
  if (!options.trace.empty()) writeTrace(jobs, options.trace);
  return status;
}

int printEnvironment(int argc) {
  if (argc > 2) {
    tools::complain("tutti-doctor: env takes no arguments; a folder of that name is ./env\n");
    return kTrouble;
  }
  const settings::Environment environment;
  fmt::print("{}", settingsTable(environment));
  const auto faults = settingsTroubles(environment);
  for (const std::string& line : faults) fmt::print("{}\n", line);
  return faults.empty() ? kHealthy : kDiverged;
}

// CLI11 knows of no second way to call a program.
std::string helpOf(const CLI::App& app) {
  std::string text = app.help();
  const size_t usage = text.find("Usage:"), end = text.find('\n', usage);
  if (usage != std::string::npos && end != std::string::npos)
    text.insert(end,
                "\n       tutti-doctor env\n       tutti-doctor net [--ranks N] [--json] [--milliseconds N] [--timeout "
                "S] [--rounds N]");
  return text;
}

int diagnoseOrComplain(const Options& options) {
  try {
    return diagnoseFiles(options);
  } catch (const BadRecord& error) {
    complain(error);
    return kTrouble;
  }
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "env") return printEnvironment(argc);
  if (argc > 1 && std::string_view(argv[1]) == "net") return net::run(argc, argv);
  Options options;
  options.shape.width = terminalWidth();
  CLI::App app(
      "Says where the ranks of a job parted, from the records (tutti-*.json) that they left: with TUTTI_DUMP_DIR "
      "set they write them on an error and on SIGUSR2.\nEnds with 0 when all is well, 1 when something is wrong "
      "with the job, 2 when a file cannot be read or written.\ntutti-doctor env: the settings (TUTTI_*) as they are "
      "here; ends with 1 when the library would refuse one, or warn of it.\ntutti-doctor net: what this host, or those "
      "of a job, have and reach of each other; tutti-doctor net --help tells more.",
      "tutti-doctor");
  app.add_option("FILES", options.paths, "Records, or folders of records")->required();
  app.add_option("--trace", options.trace,
                 "Write a trace for ui.perfetto.dev to this file, which must not be there yet");
  app.add_option("--width", options.shape.width,
                 "Characters a line (default: the terminal's, of sentences at most 100)")
      ->check(CLI::Range(20, 10'000));
  app.add_option("--calls", options.shape.calls, "Collectives in the timeline, at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--rows", options.shape.rows, "Ranks in the timeline, at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 24));
  app.set_version_flag("--version", std::string(kVersion), "Say which version this is");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", helpOf(app));
    return kHealthy;
  } catch (const CLI::CallForVersion&) {
    fmt::print("tutti-doctor of tutti {}\n", kVersion);
    return kHealthy;
  } catch (const CLI::ParseError& error) {
    tools::complain("tutti-doctor: {}\nTry --help.\n", error.what());
    return kTrouble;
  }
  const auto width = static_cast<size_t>(options.shape.width);
  options.proseWidth = app.count("--width") > 0 ? width : std::min(width, kMostProse);
  return diagnoseOrComplain(options);
}

}  // namespace
}  // namespace tutti::doctor

int main(int argc, char** argv) {
  using namespace tutti;
  return tools::flushed("tutti-doctor", doctor::kTrouble, [=] { return doctor::run(argc, argv); });
}

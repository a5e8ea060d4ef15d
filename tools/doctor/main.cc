// tutti-doctor: says where the ranks of a job parted, from the records that they left.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/settings.h"
#include "doctor/diagnose.h"
#include "doctor/records.h"
#include "doctor/timeline.h"
#include "doctor/trace.h"
#include "doctor/view.h"
#include "doctor/words.h"

namespace tutti::doctor {
namespace {

enum Status : int { kHealthy = 0, kDiverged = 1, kTrouble = 2 };

struct Options {
  std::vector<std::string> paths;
  std::string trace;
  TimelineShape shape;
};

int terminalWidth() {
  constexpr int kDefault = 120;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kDefault;
}

void printSummary(const Job& job, const View& view) {
  fmt::print("communicator {}{}: {} ranks, {} records", job.communicator, job.name.empty() ? "" : " (" + job.name + ")",
             job.size, job.records.size());
  if (!view.missing().empty()) fmt::print("; none of {}", namesOf(view.missing()));
  fmt::print("\n");
}

bool report(const Job& job, const Options& options) {
  const View view(job);
  const Diagnosis diagnosis = diagnose(job);
  printSummary(job, view);
  const char* lead = diagnosis.healthy() ? "Healthy: " : "First divergence: ";
  for (const Finding& finding : diagnosis.findings) {
    fmt::print("{}{}.\n", lead, finding.text);
    lead = "Also: ";
  }
  fmt::print("\n{}", timeline(job, diagnosis.findings.front().blamed, options.shape));
  return diagnosis.healthy();
}

void complain(const BadRecord& error) {
  std::fflush(stdout);
  fmt::print(stderr, "tutti-doctor: {}\n", error.what());
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

void writeTrace(const std::vector<Job>& jobs, const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << toTrace(jobs);
  file.close();
  if (!file) throw BadRecord(path, "the trace cannot be written there");
}

int diagnoseFiles(const Options& options) {
  int status = kHealthy;
  const std::vector<Job> jobs = groupRecords(readAll(findRecords(options.paths), status));
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (i > 0) fmt::print("\n");
    if (!report(jobs[i], options)) status = std::max<int>(status, kDiverged);
  }
  if (!options.trace.empty()) writeTrace(jobs, options.trace);
  return status;
}

// The settings as this shell has them: those that are set, or differ from what they should be, catch the eye.
int printEnvironment() {
  constexpr const char* kRow = "{:<28} {:<28} {:<28}\n";
  const settings::Environment environment;
  fmt::print(kRow, "setting", "value", "default");
  for (const auto& [setting, value] : settings::describeAll(environment)) {
    if (setting->section == settings::For::kTests) continue;
    fmt::print(kRow, setting->name, value.value_or("-"), *setting->fallback ? setting->fallback : "-");
  }
  const auto strange = settings::strangeNames(environment);
  for (const std::string& line : strange) fmt::print("{}\n", line);
  return strange.empty() ? kHealthy : kDiverged;
}

int run(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "env") return printEnvironment();
  Options options;
  options.shape.width = terminalWidth();
  CLI::App app(
      "Says where the ranks of a job parted, from the records (tutti-*.json) that they left: with TUTTI_DUMP_DIR "
      "set they write them on an error and on SIGUSR2.\nEnds with 0 when all is well, 1 when something is wrong "
      "with the job, 2 when a file cannot be read.\ntutti-doctor env: the settings (TUTTI_*) as they are here.",
      "tutti-doctor");
  app.add_option("FILES", options.paths, "Records, or folders of records")->required();
  app.add_option("--trace", options.trace, "Write a trace for ui.perfetto.dev to this file");
  app.add_option("--width", options.shape.width, "Characters a line of the timeline (default: the terminal's)")
      ->check(CLI::Range(20, 10'000));
  app.add_option("--calls", options.shape.calls, "Collectives in the timeline, at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--rows", options.shape.rows, "Ranks in the timeline, at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 24));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kHealthy : kTrouble;
  }
  try {
    return diagnoseFiles(options);
  } catch (const BadRecord& error) {
    complain(error);
    return kTrouble;
  }
}

}  // namespace
}  // namespace tutti::doctor

int main(int argc, char** argv) { return tutti::doctor::run(argc, argv); }

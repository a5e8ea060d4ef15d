#include "perf/reporter.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "perf/plot.h"

namespace tutti::perf {
namespace {

std::optional<double> minimumFromEnvironment() {
  for (const char* name : {"TUTTI_TESTS_MIN_BW", "NCCL_TESTS_MIN_BW"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return std::strtod(value, nullptr);
  }
  return std::nullopt;
}

std::vector<std::string> wholeEnvironment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

}  // namespace

Reporter::Reporter(std::string program, const Options& options, bool speaks)
    : options_(options), speaks_(speaks), progress_(speaks) {
  report_.program = std::move(program);
  report_.startTime = timeOfDay();
  report_.minimumBusGBs = minimumFromEnvironment();
  tuttiGetVersion(&report_.tuttiVersion);
}

void Reporter::say(const std::string& text) {
  if (!speaks_) return;
  progress_.clear();
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void Reporter::start(std::vector<RankInfo> ranks) {
  report_.ranks = std::move(ranks);
  if (speaks_ && !options_.jsonFile.empty()) {
    jsonPath_ = claimFile(options_.jsonFile);
    say(fmt::format("# Writing JSON output to {}\n", jsonPath_));
  }
  say(preamble(report_.program, options_, report_.tuttiVersion));
  for (const RankInfo& info : report_.ranks) say(rankLine(info));
  say(columnHeader(options_));
}

void Reporter::add(Row row) {
  for (const auto& half : {row.outOfPlace, row.inPlace}) {
    if (!half) continue;
    busSum_ += half->busGBs;
    ++measured_;
    if (half->wrong.value_or(0) != 0) ++report_.wrong;
    if (speaks_ && !warned_ && row.count > 0 && !options_.algorithm.empty() && half->algorithm != options_.algorithm) {
      warned_ = true;
      progress_.clear();
      std::fprintf(stderr, "%s: --algo %s was not used: the library chose '%s' for %zu bytes\n",
                   report_.program.c_str(), options_.algorithm.c_str(), half->algorithm.c_str(), row.bytes);
    }
  }
  if (options_.timestamps) row.timestamp = timeOfDay();
  say(rowLine(row, options_));
  if (speaks_) report_.rows.push_back(std::move(row));
}

int Reporter::finish() {
  report_.complete = true;
  report_.meanBusGBs = measured_ > 0 ? busSum_ / measured_ : 0;
  say(closing(report_.program, report_.wrong, report_.meanBusGBs, report_.minimumBusGBs));
  for (const MemoryInfo& info : report_.memory) say(memoryLine(info));
  say("#\n\n");
  if (!speaks_) return EXIT_SUCCESS;  // rank 0's status stands for all
  writeFiles();
  const bool good = report_.wrong == 0 && fastEnough(report_.meanBusGBs, report_.minimumBusGBs);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

void Reporter::writeFiles() {
  report_.endTime = timeOfDay();
  if (!jsonPath_.empty()) writeFile(jsonPath_, toJson(report_, options_, wholeEnvironment()));
  if (!options_.plotFile.empty())
    writeFile(options_.plotFile, plotOf(report_.program, report_.ranks.size(), report_.rows));
}

void Reporter::fail(const std::string& error) noexcept {
  try {
    progress_.clear();
    report_.errors.push_back(error);
    if (speaks_) writeFiles();
  } catch (const std::exception& another) {
    std::fprintf(stderr, "%s: %s\n", report_.program.c_str(), another.what());
  }
}

}  // namespace tutti::perf

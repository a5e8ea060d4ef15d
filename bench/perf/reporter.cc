#include "perf/reporter.h"

#include <strings.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "perf/environment.h"
#include "perf/plot.h"

namespace tutti::perf {
Reporter::Reporter(const Options& options, bool speaks)
    : options_(options), speaks_(speaks), progress_(speaks, options.progress) {
  report_.program = options.program;
  report_.startTime = timeOfDay();
  report_.minimumBusGBs = options.minimumGBs;
  tuttiGetVersion(&report_.tuttiVersion);
}

void Reporter::say(const std::string& text) {
  if (!speaks_) return;
  progress_.clear();
  printOut(text);
}

// Before anything is measured that could then not be kept.
void Reporter::claimFiles() {
  if (!options_.plotFile.empty()) checkWritable(options_.plotFile);
  if (!options_.jsonFile.empty()) {
    jsonPath_ = claimFile(options_.jsonFile);
    say(fmt::format("# Writing JSON output to {}\n", jsonPath_));
  }
  toWrite_ = true;
}

void Reporter::start(std::vector<RankInfo> ranks) {
  report_.ranks = std::move(ranks);
  if (speaks_) claimFiles();
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
    if (row.count > 0) compareAlgorithm(half->algorithm, row.bytes);
  }
  if (options_.timestamps) row.timestamp = timeOfDay();
  say(rowLine(row, options_));
  if (speaks_) report_.rows.push_back(std::move(row));
}

// Once: what is measured is not what was asked for.
void Reporter::compareAlgorithm(const std::string& used, size_t bytes) {
  const bool isOption = !options_.algorithm.empty();
  const std::string asked = isOption ? options_.algorithm : variable("TUTTI_ALGO").value_or("");
  const bool isChoice = asked.find_first_of(",;:^") != std::string::npos;  // among several, or for some operations
  if (!speaks_ || warned_ || asked.empty() || isChoice || strcasecmp(asked.c_str(), used.c_str()) == 0) return;
  warned_ = true;
  progress_.clear();
  std::fprintf(stderr, "%s: %s%s was not used: the library chose '%s' for %zu bytes\n", report_.program.c_str(),
               isOption ? "--algo " : "TUTTI_ALGO=", asked.c_str(), used.c_str(), bytes);
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
  if (!std::exchange(toWrite_, false)) return;
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

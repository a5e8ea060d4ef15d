// The report of -J: nccl-tests' JSON, version 3, with a few keys of tutti's own.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "perf/table.h"

namespace tutti::perf {

// All that a run produced.
struct Report {
  std::string program, startTime, endTime;
  int tuttiVersion = 0;
  std::vector<RankInfo> ranks;
  std::vector<Row> rows;
  std::vector<MemoryInfo> memory;
  bool complete = false;  // the run came to its end
  int wrong = 0;
  double meanBusGBs = 0;
  std::optional<double> minimumBusGBs;
  std::vector<std::string> errors;
};

// `environment`: "NAME=value" entries, of which the report has those that environment.h shows. docs/json.md has the
// report's keys.
std::string toJson(const Report& report, const Options& options, const std::vector<std::string>& environment);

// A file that did not exist before: `path`, or path.0, path.1, … Created empty; a signal that ends the process removes
// it until writeFile() has written it. What is there and is no file, such as a pipe, is taken as it is. Throws
// UsageError when none can be made.
std::string claimFile(const std::string& path);

// Throws UsageError when the file cannot be written. Leaves what is there as it is, and nothing where nothing was.
void checkWritable(const std::string& path);

// Throws UsageError with the system's reason.
void writeFile(const std::string& path, const std::string& text);

}  // namespace tutti::perf

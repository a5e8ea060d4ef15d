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

// `environment`: "NAME=value" entries; those whose names say that the value is a secret are left out.
std::string toJson(const Report& report, const Options& options, const std::vector<std::string>& environment);

// A file that did not exist before: `path`, or path.0, path.1, … Created empty.
// Throws UsageError when none can be made.
std::string claimFile(const std::string& path);

// Throws UsageError with the system's reason.
void writeFile(const std::string& path, const std::string& text);

}  // namespace tutti::perf

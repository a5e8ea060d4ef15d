// What rank 0 says: the table on standard output while it grows, then the files.
#pragma once
#include <memory>
#include <string>

#include "perf/json_report.h"
#include "perf/progress.h"

namespace tutti::perf {

class Reporter {
 public:
  // On ranks other than 0 (`speaks` false) it collects and says nothing.
  Reporter(const Options& options, bool speaks);

  // Its functions throw UsageError when a file cannot be written, and Failure when standard output cannot.
  void start(std::vector<RankInfo> ranks);
  bool speaks() const noexcept { return speaks_; }
  Progress& progress() { return progress_; }
  void add(Row row);
  void addMemory(std::vector<MemoryInfo> memory) { report_.memory = std::move(memory); }
  // The closing lines and the files. Returns the exit status.
  int finish();
  // After an error: what there is of the report, with the error in it. Never throws.
  void fail(const std::string& error) noexcept;

 private:
  void say(const std::string& text);
  void compareAlgorithm(const std::string& used, size_t bytes);
  void claimFiles();
  void writeFiles();

  Options options_;
  bool speaks_;
  Progress progress_;
  Report report_;
  std::string jsonPath_;
  bool toWrite_ = false;  // the files can be had, and nobody has tried to write them yet
  double busSum_ = 0;
  int measured_ = 0;
  bool warned_ = false;
};

}  // namespace tutti::perf

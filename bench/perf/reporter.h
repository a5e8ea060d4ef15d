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
  Reporter(std::string program, const Options& options, bool speaks);

  // Throws UsageError when the report's file cannot be made.
  void start(std::vector<RankInfo> ranks);
  void working(const std::string& what) { progress_.show(what); }
  void add(Row row);
  void addMemory(std::vector<MemoryInfo> memory) { report_.memory = std::move(memory); }
  // The closing lines and the files. Returns the exit status. Throws UsageError when a file cannot be written.
  int finish();
  // After an error: what there is of the report, with the error in it. Never throws.
  void fail(const std::string& error) noexcept;

 private:
  void say(const std::string& text);
  void writeFiles();

  Options options_;
  bool speaks_;
  Progress progress_;
  Report report_;
  std::string jsonPath_;
  double busSum_ = 0;
  int measured_ = 0;
  bool warned_ = false;
};

}  // namespace tutti::perf

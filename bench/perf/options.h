// The command line. Letters and long names are nccl-tests' own where it has them; the rest is tutti's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perf/types.h"

namespace tutti::perf {

// -z: when to wait for the operations of the timed loop. A call on the NULL stream has nothing to wait for.
enum class Blocking { kAtEnd = 0, kEachWithBarrier = 1, kEach = 2, kEachBarrierUntimed = 3 };
// -a: whose time is reported.
enum class Average { kRankZero = 0, kMean = 1, kMin = 2, kMax = 3 };

struct Options {
  int ranks = 0;  // local processes to start; 0: not asked for
  int threads = 1, communicatorsPerThread = 1;
  size_t minBytes = 32 << 20, maxBytes = 32 << 20, stepBytes = 1 << 20;
  size_t stepFactor = 1;
  int iterations = 20, warmups = 1, aggregated = 1, cycles = 1, checks = 1;
  std::vector<Operator> operators = {Operator::kSum};
  std::vector<tuttiDataType_t> types = {tuttiFloat32};
  int root = 0;           // -1: every rank in turn
  bool onGpus = false;    // --device cuda: the buffers are there
  int graphLaunches = 0;  // -G
  bool persistent = false;
  bool parallelInit = false;
  bool nullStream = true;  // but on GPUs, where a stream each is usual
  Blocking blocking = Blocking::kAtEnd;
  Average average = Average::kMean;
  int timeoutSeconds = 0;
  int memoryKind = 0;  // -R
  bool cpuTime = false, timestamps = false, memoryReport = false, percentiles = false;
  int skipped = 0;  // -K
  size_t unalign = 0;
  std::string transport, algorithm, jsonFile, plotFile;
  bool plantError = false;
  std::optional<bool> progress;        // nullopt: where standard error is a terminal
  std::optional<double> minimumGBs;    // that the mean must reach; from the environment
  std::string program;                 // "all_reduce_perf"
  std::vector<std::string> arguments;  // argv, for the report
  bool sharesErrors = false;           // whatever any rank of the job says goes to this process's standard error

  int localRanks() const { return threads * communicatorsPerThread; }
  // The sizes of the table, one after the other: nullopt after the last.
  std::optional<size_t> nextSize(size_t bytes) const;
};

// nullopt after printing the help or the version. Throws UsageError, and Failure where nothing can be printed.
std::optional<Options> parseOptions(int argc, const char* const* argv, const std::string& program);

// "8", "64K", "1.5M", "2G", in powers of 1024. Throws UsageError.
size_t parseSize(const std::string& text);

// To standard output, at once. Throws Failure when it cannot be written: its disk may be full.
void printOut(const std::string& text);

}  // namespace tutti::perf

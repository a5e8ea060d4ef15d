// The table on standard output, in nccl-tests' format byte for byte, so that what reads theirs reads ours.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perf/options.h"

namespace tutti::perf {

// Of single iterations; microseconds.
struct IterationStats {
  double min = 0, max = 0, mean = 0, p50 = 0, p95 = 0, p99 = 0, deviation = 0;
  double variationPercent() const { return mean > 0 ? deviation / mean * 100 : 0; }
};
// Percentiles are nearest-rank. `microseconds` must not be empty.
IterationStats statsOf(std::vector<double> microseconds);

// One of the two halves of a line.
struct Measurement {
  double microseconds = 0, algorithmGBs = 0, busGBs = 0;
  std::optional<int64_t> wrong;       // elements and guard bytes; nullopt: not checked
  std::vector<double> iterations;     // microseconds each; only with -I
  std::string algorithm, transports;  // what the library used
};

struct Row {
  size_t bytes = 0, count = 0;
  std::string type, op;
  int root = -1;
  std::optional<Measurement> outOfPlace, inPlace;  // nullopt: the collective has no such form
  std::string timestamp;
};

struct RankInfo {
  int rank = 0, group = 0, pid = 0, device = -1;
  std::string host, description, bus = "0000:00:00";
};

struct MemoryInfo {
  int rank = 0;
  uint64_t tuttiBytes = 0, peers = 0, residentBytes = 0;
};

// A number as wide as its column, with as many of two decimals as fit.
std::string fitted(double value, int width);

std::string preamble(const std::string& program, const Options& options, int tuttiVersion);
std::string rankLine(const RankInfo& info);
std::string columnHeader(const Options& options);
std::string rowLine(const Row& row, const Options& options);
// `minimum`: the bandwidth that was asked for in the environment.
std::string closing(const std::string& program, int wrong, double meanBusGBs, std::optional<double> minimum);
std::string memoryLine(const MemoryInfo& info);
// Whether the mean reaches nine tenths of the minimum.
bool fastEnough(double meanBusGBs, std::optional<double> minimum);

// "2026-01-31 12:34:56", local time.
std::string timeOfDay();

}  // namespace tutti::perf

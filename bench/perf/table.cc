#include "perf/table.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

#include <fmt/format.h>

namespace tutti::perf {
namespace {

constexpr const char* kTimeFormat = "%Y-%m-%d %H:%M:%S";

double percentile(const std::vector<double>& sorted, int percent) {
  const size_t rank = (sorted.size() * static_cast<size_t>(percent) + 99) / 100;
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

std::string blockingLine(const Options& options) {
  switch (options.blocking) {
    case Blocking::kEachWithBarrier:
      return "# Blocking Enabled: wait and barrier after each inner iteration (-m) \n";
    case Blocking::kEach:
      return "# Blocking Enabled: wait after each inner iteration (-m), no barrier \n";
    case Blocking::kEachBarrierUntimed:
      return "# Blocking Enabled: wait and barrier after each outer iteration (-n); time excludes barrier \n";
    default:
      return "";
  }
}

// Why `time` may lie outside of i_min to i_max.
std::string timeLine(const Options& options) {
  constexpr const char* kWhose[] = {"rank 0's", "the mean over ranks of each one's", "the fastest rank's",
                                    "the slowest rank's"};
  return fmt::format("# {} is {} own mean{} (-a {}): it may be less than i_min \n",
                     options.cpuTime ? "cputime" : "time", kWhose[static_cast<int>(options.average)],
                     options.skipped > 0 ? ", skipped iterations among them" : "", static_cast<int>(options.average));
}

// Columns that are there once for each half.
std::string halfHeader(const std::vector<std::string>& names) {
  std::string text = fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", names[0], names[1], names[2], names[3]);
  for (size_t i = 4; i < names.size(); ++i) text += fmt::format("  {:>7}", names[i]);
  return text;
}

std::string headerLine(const std::vector<std::string>& first, std::vector<std::string> half, bool percentiles,
                       const std::string& stamp) {
  if (!percentiles) half.resize(4);
  return fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{} {:>{}}\n", first[0], first[1], first[2], first[3],
                     first[4], halfHeader(half), halfHeader(half), stamp, stamp.empty() ? 0 : 19);
}

std::string statsColumns(const std::vector<double>& iterations, int skipped) {
  const IterationStats stats = statsOf({iterations.begin() + skipped, iterations.end()});
  return fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", fitted(stats.min, 7), fitted(stats.max, 7), fitted(stats.p99, 7),
                     fitted(stats.variationPercent(), 7));
}

std::string half(const std::optional<Measurement>& measured, const Options& options) {
  if (!measured) {
    const std::string nothing = fmt::format("  {:>7}  {:>6}  {:>6}    N/A", "nan", "nan", "nan");
    return options.percentiles ? nothing + fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "nan", "nan", "nan", "nan")
                               : nothing;
  }
  std::string text = fmt::format("  {:>7}  {:>6}  {:>6}", fitted(measured->microseconds, 7),
                                 fitted(measured->algorithmGBs, 6), fitted(measured->busGBs, 6));
  text += measured->wrong ? fmt::format("  {:6g}", static_cast<double>(*measured->wrong)) : "    N/A";
  if (options.percentiles) text += statsColumns(measured->iterations, options.skipped);
  return text;
}

std::string readable(uint64_t bytes) {
  const char* unit = " B";
  auto amount = static_cast<double>(bytes);
  for (const char* larger : {" KB", " MB", " GB"}) {
    if (amount < 1024) break;
    amount /= 1024;
    unit = larger;
  }
  return fmt::format("{:.{}f}{}", amount, amount < 10 ? 2 : (amount < 100 ? 1 : 0), unit);
}

}  // namespace

IterationStats statsOf(std::vector<double> microseconds) {
  std::sort(microseconds.begin(), microseconds.end());
  IterationStats stats;
  const auto count = static_cast<double>(microseconds.size());
  stats.min = microseconds.front();
  stats.max = microseconds.back();
  stats.p50 = percentile(microseconds, 50);
  stats.p95 = percentile(microseconds, 95);
  stats.p99 = percentile(microseconds, 99);
  stats.mean = std::accumulate(microseconds.begin(), microseconds.end(), 0.0) / count;
  double squares = 0;
  for (const double value : microseconds) squares += (value - stats.mean) * (value - stats.mean);
  stats.deviation = std::sqrt(squares / count);
  return stats;
}

std::string fitted(double value, int width) {
  for (int decimals = 2; decimals >= 0; --decimals) {
    std::string text = fmt::format("{:{}.{}f}", value, width, decimals);
    if (text.size() <= static_cast<size_t>(width)) return text;
  }
  return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

std::string preamble(const std::string& program, const Options& o, int tuttiVersion) {
  const bool byFactor = o.stepFactor > 1;
  std::string text = fmt::format("# tutti version {}.{}.{} tutti-headers={} tutti-library={}\n", TUTTI_MAJOR,
                                 TUTTI_MINOR, TUTTI_PATCH, TUTTI_VERSION_CODE, tuttiVersion);
  text += fmt::format("# Collective test starting: {}\n", program);
  text += fmt::format(
      "# nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: {} validation: "
      "{} "
      "graph: {} unalign: {}\n",
      o.threads, o.communicatorsPerThread, o.minBytes, o.maxBytes, byFactor ? o.stepFactor : o.stepBytes,
      byFactor ? "factor" : "bytes", o.warmups, o.iterations, o.aggregated, o.checks, o.graphLaunches, o.unalign);
  text += blockingLine(o);
  if (o.percentiles) {
    text += "# Per-Iteration Report: i_* uses max over ranks";
    if (o.skipped > 0) text += fmt::format("; summary skips first {} iterations", o.skipped);
    text += " \n" + timeLine(o);
  }
  if (o.parallelInit) text += "# Parallel Init Enabled: threads join concurrently \n";
  return text + "#\n# Using devices\n";
}

std::string rankLine(const RankInfo& info) {
  return fmt::format("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} [{}] {}\n", info.rank, info.group,
                     info.pid, info.host, info.device, info.bus, info.description);
}

std::string columnHeader(const Options& options) {
  const char* time = options.cpuTime ? "cputime" : "time";
  const std::string blanks = fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "", "", "", "", "");
  std::string text = "#\n" + blanks;
  text += options.percentiles
              ? fmt::format("{:>26} (+ per-iteration){:>40} (+ per-iteration)\n", "out-of-place", "in-place")
              : fmt::format("{:11}out-of-place{:23}in-place{:10}\n", "", "", "");
  text += headerLine({"size", "count", "type", "redop", "root"},
                     {time, "algbw", "busbw", "#wrong", "i_min", "i_max", "i_p99", "i_cv%"}, options.percentiles,
                     options.timestamps ? "timestamp" : "");
  text += headerLine({"(B)", "(elements)", "", "", ""}, {"(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)", "(us)", "(%)"},
                     options.percentiles, options.timestamps ? kTimeFormat : "");
  return text;
}

std::string rowLine(const Row& row, const Options& options) {
  std::string text = fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:6}", row.bytes, row.count, row.type, row.op, row.root);
  text += half(row.outOfPlace, options) + half(row.inPlace, options);
  if (options.timestamps) text += fmt::format("{:>21}", row.timestamp);
  return text + "\n";
}

std::string closing(const std::string& program, int wrong, double meanBusGBs, std::optional<double> minimum) {
  std::string text = fmt::format("# {:<20} : {} {}\n", "Out of bounds values", wrong, wrong != 0 ? "FAILED" : "OK");
  text += fmt::format("# {:<20} : {:g} {}\n", "Avg bus bandwidth", meanBusGBs,
                      !minimum ? "" : (fastEnough(meanBusGBs, minimum) ? "OK" : "FAILED"));
  return text + fmt::format("#\n# Collective test concluded: {}\n", program);
}

std::string memoryLine(const MemoryInfo& info) {
  return fmt::format("# {:<20} : rank {:2} library {} ({} bytes) | peers {} | resident {}\n", "Memory usage", info.rank,
                     readable(info.tuttiBytes), info.tuttiBytes, info.peers, readable(info.residentBytes));
}

bool fastEnough(double meanBusGBs, std::optional<double> minimum) { return !minimum || meanBusGBs >= *minimum * 0.9; }

std::string timeOfDay() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, kTimeFormat, &parts);
  return text;
}

}  // namespace tutti::perf

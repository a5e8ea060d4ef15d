#include "perf/json_report.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "perf/environment.h"
#include "perf/failure.h"
#include "perf/signals.h"

namespace tutti::perf {
namespace {

using Json = nlohmann::ordered_json;

// In this format truth values are texts.
const char* text(bool value) { return value ? "true" : "false"; }

Json describeConfig(const Options& o) {
  Json config = {{"nthreads", o.threads},
                 {"ngpus", o.communicatorsPerThread},
                 {"minimum_bytes", o.minBytes},
                 {"maximum_bytes", o.maxBytes}};
  if (o.stepFactor > 1) {
    config["step_factor"] = o.stepFactor;
  } else {
    config["step_bytes"] = o.stepBytes;
  }
  config.update({{"warmup_iters", o.warmups},
                 {"iterations", o.iterations},
                 {"aggregated_iterations", o.aggregated},
                 {"validation", o.checks},
                 {"graph", o.graphLaunches},
                 {"persistent", text(o.persistent)},
                 {"memory", o.onGpus ? "cuda" : "cpu"},
                 {"blocking_collectives", text(o.blocking != Blocking::kAtEnd)},
                 {"per_iter_timing", text(o.percentiles)},
                 {"per_iter_skip", o.skipped},
                 {"parallel_init", text(o.parallelInit)},
                 {"stream_null", text(o.nullStream)},
                 {"transport", o.transport},
                 {"algorithm", o.algorithm}});
  return config;
}

Json devicesOf(const Report& report) {
  Json devices = Json::array();
  for (const RankInfo& rank : report.ranks) {
    devices.push_back({{"rank", rank.rank},
                       {"group", rank.group},
                       {"pid", rank.pid},
                       {"hostname", rank.host},
                       {"device", rank.device},
                       {"device_hex", rank.bus},
                       {"device_info", rank.description}});
  }
  return devices;
}

Json halfOf(const std::optional<Measurement>& measured, const Options& options) {
  if (!measured) return nullptr;
  Json half = {{options.cpuTime ? "cpu_time" : "time", measured->microseconds},
               {"alg_bw", measured->algorithmGBs},
               {"bus_bw", measured->busGBs}};
  half["nwrong"] = measured->wrong ? Json(static_cast<double>(*measured->wrong)) : Json(nullptr);
  half["algorithm"] = measured->algorithm;
  half["transports"] = measured->transports;
  return half;
}

Json iterationsOf(const Measurement& measured, const Options& options) {
  const auto& times = measured.iterations;
  const IterationStats stats = statsOf({times.begin() + options.skipped, times.end()});
  return {{"skipped_iterations", options.skipped},
          {"min_us", stats.min},
          {"max_us", stats.max},
          {"avg_us", stats.mean},
          {"p50_us", stats.p50},
          {"p95_us", stats.p95},
          {"p99_us", stats.p99},
          {"stdev_us", stats.deviation},
          {"cv_pct", stats.variationPercent()},
          {"times_us", times}};
}

Json rowOf(const Row& row, const Options& options) {
  Json json = {{"size", row.bytes},
               {"count", row.count},
               {"type", row.type},
               {"redop", row.op},
               {"root", fmt::format("{:6}", row.root)}};
  json["out_of_place"] = halfOf(row.outOfPlace, options);
  if (options.percentiles && row.outOfPlace) json["out_of_place_per_iter"] = iterationsOf(*row.outOfPlace, options);
  json["in_place"] = halfOf(row.inPlace, options);
  if (options.percentiles && row.inPlace) json["in_place_per_iter"] = iterationsOf(*row.inPlace, options);
  json["actual_iterations"] = options.iterations;
  json["experiment_name"] = "";
  return json;
}

Json memoryOf(const Report& report) {
  Json list = Json::array();
  for (const MemoryInfo& info : report.memory) {
    list.push_back({{"rank", info.rank},
                    {"tutti_bytes", info.tuttiBytes},
                    {"connected_peers", info.peers},
                    {"resident_bytes", info.residentBytes}});
  }
  return list;
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

[[noreturn]] void cannotWrite(const std::string& path) {
  throw UsageError(fmt::format("cannot write {}: {}{}", path, std::strerror(errno), limitBehind(errno)));
}

// What a full disk leaves of a file is of no use to anybody; what is no plain file, such as a device, stays.
[[noreturn]] void removeHalf(const std::string& path) {
  const int error = errno;
  struct stat state {};
  if (lstat(path.c_str(), &state) == 0 && S_ISREG(state.st_mode)) unlink(path.c_str());
  errno = error;
  cannotWrite(path);
}

// What is there, behind links if need be; no folder.
std::optional<struct stat> stateOf(const std::string& path) {
  struct stat state {};
  if (stat(path.c_str(), &state) != 0) return std::nullopt;
  if (S_ISDIR(state.st_mode)) throw UsageError(fmt::format("cannot write {}: it is a folder", path));
  return state;
}

// Makes what is not there, but nothing through a link, and removes only what it made.
void checkCreatable(const std::string& path) {
  const File file(std::fopen(path.c_str(), "wx"), std::fclose);
  if (file) {
    unlink(path.c_str());
    return;
  }
  if (errno == EEXIST) throw UsageError(fmt::format("cannot write {}: it is a link to what is not there", path));
  cannotWrite(path);
}

void addSummary(Json& json, const Report& report) {
  json["out_of_bounds"] = {{"count", report.wrong}, {"okay", text(report.wrong == 0)}};
  const char* okay = report.minimumBusGBs ? text(fastEnough(report.meanBusGBs, report.minimumBusGBs)) : "unchecked";
  json["average_bus_bandwidth"] = {{"bandwidth", report.meanBusGBs}, {"okay", okay}};
}

}  // namespace

std::string toJson(const Report& report, const Options& options, const std::vector<std::string>& environment) {
  Json json;
  json["version"] = 3;
  json["start_time"] = report.startTime;
  json["program"] = report.program;
  json["args"] = options.arguments;
  json["env"] = shownOf(environment);
  json["tutti_version"] = report.tuttiVersion;
  json["config"] = describeConfig(options);
  json["config"]["devices"] = devicesOf(report);
  json["devices"] = json["config"]["devices"];
  json["results"] = Json::array();
  for (const Row& row : report.rows) json["results"].push_back(rowOf(row, options));
  if (report.complete) addSummary(json, report);
  if (options.memoryReport) json["memory"] = memoryOf(report);
  json["errors"] = report.errors;
  json["end_time"] = report.endTime;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void checkWritable(const std::string& path) {
  const auto state = stateOf(path);
  if (!state) return checkCreatable(path);
  // Not opened: of a pipe, that waits for who reads it, and closing it would be all that the reader gets.
  if (access(path.c_str(), W_OK) != 0) cannotWrite(path);
}

std::string claimFile(const std::string& path) {
  const auto state = stateOf(path);
  if (state && !S_ISREG(state->st_mode)) return path;
  std::string candidate = path;
  for (int attempt = 0;; ++attempt) {
    const File file(std::fopen(candidate.c_str(), "wx"), std::fclose);
    if (file) return removeOnSignal(candidate), candidate;
    if (errno != EEXIST) cannotWrite(candidate);
    candidate = fmt::format("{}.{}", path, attempt);
  }
}

void writeFile(const std::string& path, const std::string& content) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) cannotWrite(path);
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const bool closed = std::fclose(file) == 0;
  keepOnSignal(path);
  if (!written || !closed) removeHalf(path);
}

}  // namespace tutti::perf

#include "perf/options.h"

#include <cmath>
#include <cstdio>
#include <map>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "perf/failure.h"

namespace tutti::perf {
namespace {

// What the command line says, before names are looked up.
struct Raw {
  int ctaPolicy = 0, deviceImplementation = 0, deviceBlocks = 0;
  std::string minBytes, maxBytes, stepBytes, op = "sum", type = "float", root = "0", device = "cpu";
  int blocking = 0, average = 1, nullStream = -1;
};

void addSizes(CLI::App& app, Options& options, Raw& raw) {
  app.add_option("-b,--minbytes", raw.minBytes, "smallest size in bytes; K, M, G are powers of 1024 (32M)");
  app.add_option("-e,--maxbytes", raw.maxBytes, "largest size in bytes (32M)");
  app.add_option("-i,--stepbytes", raw.stepBytes, "bytes to add from size to size (1M)");
  app.add_option("-f,--stepfactor", options.stepFactor, "factor from size to size, instead of -i");
  app.add_option("-u,--unalign", options.unalign, "elements by which the buffers are moved off their alignment");
}

void addLoops(CLI::App& app, Options& options) {
  app.add_option("-n,--iters", options.iterations, "timed iterations (20)");
  app.add_option("-w,--warmup_iters", options.warmups, "iterations before (1)");
  app.add_option("-m,--agg_iters", options.aggregated, "operations put together in a group per iteration (1)");
  app.add_option("-N,--run_cycles", options.cycles, "times to run all sizes; 0: without end (1)");
  app.add_option("-c,--check", options.checks, "verified iterations; 0: no verification (1)");
}

void addWhat(CLI::App& app, Options& options, Raw& raw) {
  app.add_option("-o,--op", raw.op, "sum, prod, min, max, avg, mulsum or all (sum)");
  app.add_option(
      "-d,--datatype", raw.type,
      "int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, f8e4m3, f8e5m2 or all (float)");
  app.add_option("-r,--root", raw.root, "root; -1 or all: every rank in turn (0)");
  app.add_option("-R,--local_register", options.memoryKind,
                 "buffers: 0 ordinary memory, 1 ordinary and registered, 2 shareable and registered (0)")
      ->check(CLI::Range(0, 2));
}

// nccl-tests' 0/1 options, which need not be given the 1.
void addSwitch(CLI::App& app, const char* names, bool& value, const char* help) {
  app.add_option(names, value, help)->expected(0, 1)->default_str("1")->option_text("[0/1]");
}

void addHow(CLI::App& app, Options& options, Raw& raw) {
  app.add_option("--ranks", options.ranks, "local processes to start, where no launcher has started any")
      ->check(CLI::Range(1, 4096));
  app.add_option("-t,--nthreads", options.threads, "threads per process, each with ranks of its own (1)")
      ->check(CLI::Range(1, 4096));
  app.add_option("-g,--ngpus", options.communicatorsPerThread, "ranks that each thread drives, in groups (1)")
      ->check(CLI::Range(1, 4096));
  addSwitch(app, "-p,--parallel_init", options.parallelInit, "1: the ranks of a process join from a thread each (0)");
  app.add_option("--device", raw.device,
                 "where the buffers are: cpu, or cuda: a GPU for each rank, in turn where there are fewer (cpu)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("-y,--stream_null", raw.nullStream,
                 "1: operations run in the calling thread, or on a GPU's default stream; 0: on a stream of each rank's "
                 "own (1; on GPUs 0)")
      ->check(CLI::Range(0, 1));
  app.add_option(
         "-z,--blocking", raw.blocking,
         "with -y 0, wait for operations 0: after the timed loop; 1: after each, and for all ranks; 2: after each; "
         "3: after each, and for all ranks outside the measured time (0)")
      ->check(CLI::Range(0, 3));
  app.add_option("--transport", options.transport, "transports to use, as TUTTI_TRANSPORT: tcp, shm,tcp, ^verbs");
  app.add_option("--algo", options.algorithm, "algorithm to use, as TUTTI_ALGO: ring, tree, ...");
  app.add_option("-T,--timeout", options.timeoutSeconds,
                 "seconds that an operation may take; 0: the library's default");
  app.add_option("-G,--cudagraph", options.graphLaunches,
                 "with --device cuda, capture the timed iterations in a CUDA graph and launch it so many times (0)");
  app.add_option("-x,--cta_policy", raw.ctaPolicy, "0: how many blocks a GPU runs is the library's choice (0)");
  app.add_option("-D,--device_implementation", raw.deviceImplementation, "0: the library's own kernels (0)");
  app.add_option("-V,--device_cta_count", raw.deviceBlocks, "of -D other than 0: means nothing here");
}

void addReports(CLI::App& app, Options& options, Raw& raw) {
  app.add_option("-a,--average", raw.average,
                 "time reported: 0 rank 0's, 1 mean, 2 least, 3 greatest of the ranks' (1)")
      ->check(CLI::Range(0, 3));
  addSwitch(app, "-C,--report_cputime", options.cpuTime, "1: report the time until the calls returned (0)");
  addSwitch(app, "-S,--report_timestamps", options.timestamps, "1: add the time of day to each line (0)");
  addSwitch(app, "-M,--memory", options.memoryReport, "1: report each rank's memory (0)");
  addSwitch(app, "-I,--per_iter_timing", options.percentiles, "1: add columns of single iterations' times (0)");
  app.add_option("-K,--per_iter_skip", options.skipped, "iterations that these columns leave out at the start (0)");
  app.add_flag("--percentiles", options.percentiles, "as -I 1");
  app.add_option("-J,--output_file,--json", options.jsonFile,
                 "write a JSON report; an existing file is kept, a number added");
  app.add_option("--plot", options.plotFile, "draw bus bandwidth and time over size to an SVG file");
  app.add_flag("--plant-error", options.plantError,
               "flip one bit of one rank's results before each check: the program must notice");
}

template <class T>
std::vector<T> oneOrAll(const std::string& name, const std::vector<T>& all, T (*byName)(const std::string&)) {
  return name == "all" ? all : std::vector<T>{byName(name)};
}

int parseRoot(const std::string& text) {
  if (text == "all") return -1;
  size_t used = 0;
  int root = -2;
  try {
    root = std::stoi(text, &used);
  } catch (const std::exception&) {
  }
  if (used != text.size() || root < -1) throw UsageError(fmt::format("invalid root '{}': a rank, -1 or all", text));
  return root;
}

void refuseIf(bool condition, const std::string& text) {
  if (condition) throw UsageError(text);
}

void lookUp(Options& options, const Raw& raw) {
  refuseIf(raw.ctaPolicy != 0, "-x: there is only policy 0, where the library chooses how many blocks run");
  refuseIf(raw.deviceImplementation != 0, "-D: there is only implementation 0, the library's own");
  if (!raw.minBytes.empty()) options.minBytes = parseSize(raw.minBytes);
  if (!raw.maxBytes.empty()) options.maxBytes = parseSize(raw.maxBytes);
  if (!raw.stepBytes.empty()) options.stepBytes = parseSize(raw.stepBytes);
  options.operators = oneOrAll<Operator>(raw.op, allOperators(), operatorByName);
  options.types = oneOrAll<tuttiDataType_t>(raw.type, allTypes(), typeByName);
  options.root = parseRoot(raw.root);
  options.onGpus = raw.device == "cuda";
  options.nullStream = raw.nullStream < 0 ? !options.onGpus : raw.nullStream == 1;
  options.blocking = static_cast<Blocking>(raw.blocking);
  options.average = static_cast<Average>(raw.average);
}

void validateDevice(const Options& options) {
  refuseIf(options.graphLaunches < 0, "--cudagraph cannot be negative");
  refuseIf(options.graphLaunches > 0 && !options.onGpus,
           "-G launches CUDA graphs: it needs --device cuda, on host memory there are none");
  refuseIf(options.graphLaunches > 0 && options.nullStream,
           "-G needs streams of the ranks' own: CUDA captures nothing on the default stream, so leave -y at 0");
  refuseIf(options.graphLaunches > 0 && (options.percentiles || options.blocking != Blocking::kAtEnd),
           "-G launches all iterations as a whole: there is nothing to wait for, or to time, between them (-I, -z)");
}

void validate(const Options& options) {
  validateDevice(options);
  refuseIf(options.minBytes > options.maxBytes,
           fmt::format("invalid sizes for 'minbytes' and 'maxbytes': {} > {}", options.minBytes, options.maxBytes));
  refuseIf(options.minBytes < options.maxBytes && options.stepFactor <= 1 && options.stepBytes == 0,
           "with --stepbytes 0 the sizes would never end: give a step, or a --stepfactor above 1");
  refuseIf(options.iterations < 1, "--iters must be at least 1");
  refuseIf(options.aggregated < 1, "--agg_iters must be at least 1");
  refuseIf(options.warmups < 0 || options.cycles < 0 || options.checks < 0 || options.timeoutSeconds < 0,
           "--warmup_iters, --run_cycles, --check and --timeout cannot be negative");
  refuseIf(options.skipped < 0 || options.skipped >= options.iterations,
           "--per_iter_skip must leave at least one of the --iters");
  refuseIf(options.skipped > 0 && !options.percentiles, "--per_iter_skip needs -I 1 (or --percentiles)");
  refuseIf(options.plantError && options.checks == 0, "--plant-error needs a check: leave -c at 1 or more");
}

}  // namespace

size_t parseSize(const std::string& text) {
  static const std::map<std::string, double> kUnits = {{"", 1},       {"K", 0x1p10}, {"k", 0x1p10}, {"M", 0x1p20},
                                                       {"m", 0x1p20}, {"G", 0x1p30}, {"g", 0x1p30}};
  size_t used = 0;
  double number = -1;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  const auto unit = kUnits.find(text.substr(used));
  if (used == 0 || unit == kUnits.end() || !(number >= 0) || number * unit->second > 0x1p50) {
    throw UsageError(fmt::format("invalid size '{}': a number of bytes, with K, M or G for powers of 1024", text));
  }
  return static_cast<size_t>(number * unit->second);
}

std::optional<size_t> Options::nextSize(size_t bytes) const {
  const size_t next = stepFactor > 1 ? std::max<size_t>(bytes * stepFactor, 1) : bytes + stepBytes;
  if (next > maxBytes || next <= bytes) return std::nullopt;
  return next;
}

std::optional<Options> parseOptions(int argc, const char* const* argv, const std::string& program) {
  CLI::App app("Measures and verifies a collective of tutti between processes or threads, on host memory or on GPUs.",
               program);
  // As with getopt: scripts add their options behind others', and the last one counts.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  Options options;
  Raw raw;
  addSizes(app, options, raw);
  addLoops(app, options);
  addWhat(app, options, raw);
  addHow(app, options, raw);
  addReports(app, options, raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  lookUp(options, raw);
  validate(options);
  options.arguments.assign(argv, argv + argc);
  return options;
}

}  // namespace tutti::perf

#include "perf/options.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "base/byte_size.h"
#include "base/limits.h"
#include "perf/environment.h"
#include "perf/extras.h"
#include "perf/failure.h"
#include "perf/help.h"

namespace tutti::perf {
namespace {

constexpr int64_t kMostCounted = 1'000'000'000;  // iterations, cycles, checks
constexpr int64_t kMostAtOnce = 1'000'000;       // operations of a group, launches of a graph
constexpr int64_t kMostElements = 1 << 20;       // by which a buffer may be shifted
constexpr int kMostHere = 4096;                  // ranks of one host

// What the command line says, before names are looked up.
struct Raw {
  int ctaPolicy = 0, deviceImplementation = 0, deviceBlocks = 0;
  std::string minBytes, maxBytes, stepBytes, op = "sum", type = "float", root = "0", device = "cpu";
  int blocking = 0, average = 1, nullStream = -1, progress = -1;
  bool version = false;
};

int64_t parseNumber(const std::string& names, const std::string& text, int64_t low, int64_t high) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end || value < low || value > high)
    throw UsageError(fmt::format("{} {}: expected a whole number from {} to {}", names, text, low, high));
  return value;
}

// Every number has a range: what lies outside is refused before anything is counted with it.
template <class T>
void addNumber(CLI::App& app, const char* names, T& value, int64_t low, int64_t high, const char* help) {
  app.add_option_function<std::string>(
         names, [=, &value](const std::string& text) { value = static_cast<T>(parseNumber(names, text, low, high)); },
         help)
      ->option_text("N");
}

// nccl-tests' 0/1 options, which need not be given the 1: CLI11 hands over an empty text then.
void addSwitch(CLI::App& app, const char* names, bool& value, const char* help) {
  const auto set = [=, &value](const std::string& text) {
    if (!text.empty() && text != "0" && text != "1")
      throw UsageError(fmt::format("{} {}: expected 0 or 1", names, text));
    value = text != "0";
  };
  app.add_option_function<std::string>(names, set, help)->expected(0, 1)->option_text("[0/1]");
}

// An empty text is most likely a variable of a script's that was never set.
void addText(CLI::App& app, const char* names, std::string& value, const char* kind, const std::string& help) {
  const auto set = [=, &value](const std::string& text) {
    if (text.empty()) throw UsageError(fmt::format("{}: {} is empty", names, kind));
    value = text;
  };
  app.add_option_function<std::string>(names, set, help)->option_text(kind);
}

void startGroup(CLI::App& app, const char* name) { app.option_defaults()->group(name); }

void addSizes(CLI::App& app, Options& options, Raw& raw) {
  startGroup(app, "Sizes");
  addText(app, "-b,--minbytes", raw.minBytes, "SIZE", "smallest size in bytes; K, M, G are powers of 1024 (32M)");
  addText(app, "-e,--maxbytes", raw.maxBytes, "SIZE", "largest size in bytes (32M)");
  addText(app, "-i,--stepbytes", raw.stepBytes, "SIZE", "bytes to add from size to size (1M)");
  addNumber(app, "-f,--stepfactor", options.stepFactor, 1, kMostElements,
            "factor from size to size, instead of -i; 1: -i (1)");
  addNumber(app, "-u,--unalign", options.unalign, 0, kMostElements,
            "elements by which the buffers are moved off their alignment (0)");
}

void addLoops(CLI::App& app, Options& options) {
  startGroup(app, "Iterations");
  addNumber(app, "-n,--iters", options.iterations, 1, kMostCounted, "timed iterations (20)");
  addNumber(app, "-w,--warmup_iters", options.warmups, 0, kMostCounted, "iterations before (1)");
  addNumber(app, "-m,--agg_iters", options.aggregated, 1, kMostAtOnce,
            "operations put together in a group per iteration (1)");
  addNumber(app, "-N,--run_cycles", options.cycles, 0, kMostCounted, "times to run all sizes; 0: without end (1)");
  addNumber(app, "-c,--check", options.checks, 0, kMostCounted, "verified iterations; 0: no verification (1)");
}

void addWhat(CLI::App& app, Options& options, Raw& raw) {
  std::vector<const char*> typeNames;
  for (const tuttiDataType_t type : allTypes()) typeNames.push_back(nameOf(type));
  startGroup(app, "What to run");
  addText(app, "-o,--op", raw.op, "NAME", "sum, prod, min, max, avg, mulsum, band, bor, bxor or all (sum)");
  addText(app, "-d,--datatype", raw.type, "NAME",
          fmt::format("{} or all (float). Also: fp16 and bf16; fp32; fp64; fp8 and e4m3, which are f8e4m3; e5m2",
                      fmt::join(typeNames, ", ")));
  addText(app, "-r,--root", raw.root, "RANK", "root; -1 or all: every rank in turn (0)");
  addNumber(app, "-R,--local_register", options.memoryKind, 0, 2,
            "buffers: 0 ordinary memory, 1 ordinary and registered, 2 shareable and registered (0)");
}

void addRanks(CLI::App& app, Options& options, Raw& raw) {
  startGroup(app, "Ranks");
  addNumber(app, "--ranks", options.ranks, 1, kMostHere, "local processes to start, where no launcher has started any");
  addNumber(app, "-t,--nthreads", options.threads, 1, kMostHere, "threads per process, each with ranks of its own (1)");
  addNumber(app, "-g,--ngpus", options.communicatorsPerThread, 1, kMostHere,
            "ranks that each thread drives, in groups (1)");
  addSwitch(app, "-p,--parallel_init", options.parallelInit, "1: the ranks of a process join from a thread each (0)");
  addText(app, "--device", raw.device, "WHERE",
          "where the buffers are: cpu, or cuda: a GPU for each rank, in turn where there are fewer (cpu)");
}

void addHow(CLI::App& app, Options& options, Raw& raw) {
  startGroup(app, "How to run it");
  addNumber(app, "-y,--stream_null", raw.nullStream, 0, 1,
            "1: operations run in the calling thread, or on a GPU's default stream; 0: on a stream of each rank's own "
            "(1; on GPUs 0)");
  addNumber(app, "-z,--blocking", raw.blocking, 0, 3,
            "with -y 0, wait for operations 0: after the timed loop; 1: after each, and for all ranks; 2: after each; "
            "3: after each, and for all ranks outside the measured time (0)");
  addText(app, "--transport", options.transport, "LIST", "transports to use, as TUTTI_TRANSPORT: tcp, shm,tcp, ^shm");
  addText(app, "--algo", options.algorithm, "LIST", "algorithms to use, as TUTTI_ALGO: ring, tree,ring, ^tree, ...");
  addNumber(app, "-T,--timeout", options.timeoutSeconds, 0, kMostAtOnce,
            "seconds that an operation may take; 0: the library's default (0)");
  addNumber(app, "-G,--cudagraph", options.graphLaunches, 0, kMostAtOnce,
            "with --device cuda, capture the timed iterations in a CUDA graph and launch it so many times (0)");
  addSwitch(app, "--persistent", options.persistent,
            "1: make the timed calls ready once for each size, and start them again and again (0)");
  addNumber(app, "-x,--cta_policy", raw.ctaPolicy, 0, kMostHere,
            "0: how many blocks a GPU runs is the library's choice (0)");
  addNumber(app, "-D,--device_implementation", raw.deviceImplementation, 0, kMostHere,
            "0: the library's own kernels (0)");
  addNumber(app, "-V,--device_cta_count", raw.deviceBlocks, 0, kMostElements, "of -D other than 0: means nothing here");
}

void addReports(CLI::App& app, Options& options, Raw& raw) {
  startGroup(app, "What to report");
  addNumber(app, "-a,--average", raw.average, 0, 3,
            "time reported: 0 rank 0's, 1 mean, 2 least, 3 greatest of the ranks' (1)");
  addSwitch(app, "-C,--report_cputime", options.cpuTime, "1: report the time until the calls returned (0)");
  addSwitch(app, "-S,--report_timestamps", options.timestamps, "1: add the time of day to each line (0)");
  addSwitch(app, "-M,--memory", options.memoryReport, "1: report each rank's memory (0)");
  addSwitch(
      app, "-I,--per_iter_timing,--percentiles", options.percentiles,
      "1: wait for and time each iteration by itself; adds columns, and percentiles to the report. An iteration's "
      "time is that of its slowest rank, while the column time is as -a says: it may be less than i_min (0)");
  addNumber(app, "-K,--per_iter_skip", options.skipped, 0, kMostCounted,
            "with -I, first iterations to leave out of these columns (0)");
  addText(app, "-J,--output_file,--json", options.jsonFile, "FILE",
          "write a JSON report; an existing file is kept, a number added");
  addText(app, "--plot", options.plotFile, "FILE",
          "draw bus bandwidth and time over size to an SVG file; an existing one is replaced");
  addNumber(app, "--progress", raw.progress, 0, 1,
            "say on standard error which line is measured, of how many, and for how long still: 1 always, 0 never "
            "(where it is a terminal)");
  app.add_flag("--plant-error", options.plantError,
               "flip one bit of one rank's results before each check: the program must notice");
  startGroup(app, "Other");
  app.add_flag("--version", raw.version, "say which version this is, and end");
  app.set_help_flag("-h,--help", "print this, and end");
}

template <class T>
std::vector<T> oneOrAll(const std::string& name, const std::vector<T>& all, T (*byName)(const std::string&)) {
  return name == "all" ? all : std::vector<T>{byName(name)};
}

int parseRoot(const std::string& text) {
  if (text == "all") return -1;
  return static_cast<int>(parseNumber("-r,--root", text, -1, (1 << 14) - 1));
}

// CLI11 takes the next option for the value that is missing, and at the end names another of the option's names than
// the one that was typed.
void refuseMissingValues(const CLI::App& app, int argc, const char* const* argv) {
  const auto optionAt = [&](int i) { return i < argc && *argv[i] == '-' ? app.get_option_no_throw(argv[i]) : nullptr; };
  for (int i = 1; i < argc; ++i) {
    const CLI::Option* option = optionAt(i);
    if (option == nullptr || option->get_expected_min() == 0) continue;
    if (i + 1 == argc || optionAt(i + 1) != nullptr)
      throw UsageError(fmt::format("{}: {} is missing", argv[i], option->get_option_text()));
    ++i;
  }
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
  refuseIf(raw.device != "cpu" && raw.device != "cuda", fmt::format("--device {}: choose cpu or cuda", raw.device));
  options.onGpus = raw.device == "cuda";
  options.nullStream = raw.nullStream < 0 ? !options.onGpus : raw.nullStream == 1;
  options.blocking = static_cast<Blocking>(raw.blocking);
  options.average = static_cast<Average>(raw.average);
  if (raw.progress >= 0) options.progress = raw.progress == 1;
  options.minimumGBs = minimumBandwidth();
}

void validateDevice(const Options& options) {
  refuseIf(options.graphLaunches > 0 && !options.onGpus,
           "-G launches CUDA graphs: it needs --device cuda, on host memory there are none");
  refuseIf(options.graphLaunches > 0 && options.nullStream,
           "-G needs streams of the ranks' own: CUDA captures nothing on the default stream, so leave -y at 0");
  refuseIf(options.graphLaunches > 0 && options.persistent,
           "--persistent makes requests, which there are none of for what -G captures: choose one of them");
  refuseIf(options.graphLaunches > 0 && (options.percentiles || options.blocking != Blocking::kAtEnd),
           "-G launches all iterations as a whole: there is nothing to wait for, or to time, between them (-I, -z)");
}

void validateRanks(const Options& options) {
  const int64_t processes = std::max(options.ranks, 1),
                each = int64_t{options.threads} * options.communicatorsPerThread;
  refuseIf(processes * each > kMostHere,
           fmt::format("--ranks {}, -t {} and -g {} make {} ranks: {} can be started on one host", processes,
                       options.threads, options.communicatorsPerThread, processes * each, kMostHere));
}

void validate(const Options& options) {
  validateRanks(options);
  validateDevice(options);
  refuseIf(options.minBytes > options.maxBytes,
           fmt::format("invalid sizes for 'minbytes' and 'maxbytes': {} > {}", options.minBytes, options.maxBytes));
  refuseIf(options.minBytes < options.maxBytes && options.stepFactor <= 1 && options.stepBytes == 0,
           "with --stepbytes 0 the sizes would never end: give a step, or a --stepfactor above 1");
  refuseIf(options.skipped >= options.iterations, "--per_iter_skip must leave at least one of the --iters");
  refuseIf(options.skipped > 0 && !options.percentiles, "--per_iter_skip needs -I 1 (or --percentiles)");
  refuseIf(options.plantError && options.checks == 0, "--plant-error needs a check: leave -c at 1 or more");
}

}  // namespace

size_t parseSize(const std::string& text) {
  if (const auto bytes = parseByteSize(text)) return *bytes;
  throw UsageError(fmt::format("invalid size '{}': a number of bytes, with K, M or G for powers of 1024", text));
}

std::optional<size_t> Options::nextSize(size_t bytes) const {
  if (stepFactor > 1 && bytes > maxBytes / stepFactor) return std::nullopt;
  const size_t next = stepFactor > 1 ? std::max<size_t>(bytes * stepFactor, 1) : bytes + stepBytes;
  if (next > maxBytes || next <= bytes) return std::nullopt;
  return next;
}

void printOut(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw Failure(fmt::format("cannot write to standard output: {}{}", std::strerror(errno), limitBehind(errno)));
}

std::optional<Options> parseOptions(int argc, const char* const* argv, const std::string& program) {
  CLI::App app("Measures and verifies a collective of tutti between processes or threads, on host memory or on GPUs.",
               program);
  // As with getopt: scripts add their options behind others', and the last one counts.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.set_help_flag();  // comes last
  Options options;
  Raw raw;
  addSizes(app, options, raw);
  addLoops(app, options);
  addWhat(app, options, raw);
  addRanks(app, options, raw);
  addHow(app, options, raw);
  addReports(app, options, raw);
  refuseMissingValues(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    printOut(helpOf(app, program));
    return std::nullopt;
  } catch (const CLI::ExtrasError&) {
    throw UsageError(extrasText(app, argc, argv));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  if (raw.version) {
    printOut(versionOf(program));
    return std::nullopt;
  }
  lookUp(options, raw);
  validate(options);
  options.program = program;
  options.arguments.assign(argv, argv + argc);
  return options;
}

}  // namespace tutti::perf

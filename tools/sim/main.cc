// tutti-sim: how long a collective would take on a cluster that need not be there.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "base/error.h"
#include "base/version.h"
#include "proof/verify.h"
#include "sim/simulate.h"
#include "sim/table.h"

namespace tutti::simtool {
namespace {

enum Status : int { kDone = 0, kTrouble = 2 };

constexpr size_t kMostProved = 64;  // ranks: the proof of more takes longer than one waits
constexpr size_t kFirstOfSweep = 1 << 10, kSweepFactor = 8;

struct Options {
  std::string system = "hgx-h100", op = "all_reduce", size = "64M", algo = "all";
  int nodes = 1, ranksPerHost = 0, channels = 0, root = 0;
  bool sweep = false;
};

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

// The grammar of the measuring programs.
size_t sizeOf(const std::string& text) {
  size_t used = 0;
  double number = -1;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  const std::string unit = text.substr(used);
  const size_t place = unit.size() == 1 ? std::string("KkMmGg").find(unit[0]) : unit.empty() ? 0 : std::string::npos;
  const double bytes = place == std::string::npos ? -1 : number * (unit.empty() ? 1 : std::pow(1024, place / 2 + 1));
  if (used == 0 || !(bytes >= 1) || bytes > 0x1p44)
    refuse(fmt::format("invalid size '{}': a number of bytes up to 16384G, with K, M or G for powers of 1024", text));
  return static_cast<size_t>(bytes);
}

constexpr struct {
  const char* name;
  Collective collective;
} kOps[] = {{"all_reduce", Collective::kAllReduce},
            {"all_gather", Collective::kAllGather},
            {"reduce_scatter", Collective::kReduceScatter},
            {"broadcast", Collective::kBroadcast},
            {"reduce", Collective::kReduce},
            {"alltoall", Collective::kAllToAll},
            {"gather", Collective::kGather},
            {"scatter", Collective::kScatter}};

Collective opOf(const std::string& name) {
  std::string names;
  for (const auto& op : kOps) {
    if (name == op.name) return op.collective;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", op.name);
  }
  refuse(fmt::format("'{}' is no operation; choose one of: {}", name, names));
}

sim::Cluster clusterOf(const Options& options) {
  sim::Cluster cluster = sim::clusterByName(options.system, options.nodes, options.ranksPerHost);
  if (cluster.ranks() > sim::kMostRanksOfRuntime) cluster.channels = 1;  // more take minutes, and gigabytes
  if (options.channels != 0) cluster.channels = options.channels;
  return cluster;
}

// Whether it was proved; throws where it is wrong. What is simulated is what was looked at here.
bool prove(schedule::Algorithm algorithm, const sim::Cluster& cluster, const sim::Message& message) {
  if (static_cast<size_t>(cluster.ranks()) > kMostProved) return false;
  const schedule::Shape shape = sim::shapeOf(cluster, message);
  std::vector<schedule::Schedule> all;
  for (int rank = 0; rank < shape.size; ++rank) all.push_back(schedule::build(algorithm, shape, rank));
  const proof::Verdict verdict = proof::verify(all, static_cast<int>(cluster.depth));
  if (!verdict.ok)
    throw Error(ErrorCode::kInternal, fmt::format("{} on {} ranks is not right: {}", nameOf(algorithm), shape.size,
                                                  verdict.problems.front()));
  return true;
}

// One that is asked for by name is run whatever may be said against it, and fails where it cannot be.
struct Candidates {
  std::vector<schedule::Algorithm> run;
  std::vector<std::string> leftOut;
  bool named = false;
};

Candidates candidatesOf(const Options& options, const sim::Cluster& cluster, Collective collective) {
  Candidates candidates;
  if (options.algo != "all") {
    candidates.run.push_back(schedule::algorithmByName(options.algo));
    candidates.named = true;
    return candidates;
  }
  for (const schedule::Algorithm each : schedule::algorithmsFor(collective)) {
    const std::string reason = sim::objectionTo(each, cluster, collective);
    if (reason.empty()) {
      candidates.run.push_back(each);
    } else {
      candidates.leftOut.push_back(fmt::format("{}: {}", nameOf(each), reason));
    }
  }
  return candidates;
}

Table tableOf(const Candidates& candidates, const sim::Cluster& cluster, const sim::Message& message) {
  Table table{cluster, message, {}, candidates.leftOut};
  for (const schedule::Algorithm each : candidates.run) try {
      const bool proved = prove(each, cluster, message);
      table.rows.push_back({each, proved, sim::simulate(each, cluster, message)});
    } catch (const Error& error) {
      if (candidates.named || error.code() != ErrorCode::kInvalidArgument) throw;
      table.leftOut.push_back(fmt::format("{}: {}", nameOf(each), error.what()));
    }
  std::ranges::stable_sort(table.rows, {}, [](const Row& row) { return row.result.us; });
  return table;
}

std::vector<size_t> sizesOf(const Options& options) {
  const size_t last = sizeOf(options.size);
  std::vector<size_t> sizes;
  if (options.sweep)
    for (size_t bytes = kFirstOfSweep; bytes < last; bytes *= kSweepFactor) sizes.push_back(bytes);
  sizes.push_back(last);
  return sizes;
}

void simulateAll(const Options& options) {
  const sim::Cluster cluster = clusterOf(options);
  const Collective collective = opOf(options.op);
  const std::vector<size_t> sizes = sizesOf(options);
  const Candidates candidates = candidatesOf(options, cluster, collective);
  if (candidates.run.empty()) refuse("no algorithm is of use here: name one with --algo");
  std::vector<Table> tables;
  for (const size_t bytes : sizes) {
    tables.push_back(tableOf(candidates, cluster, {collective, bytes, options.root}));
    if (tables.back().rows.empty()) refuse(fmt::format("no algorithm can do that; {}", tables.back().leftOut.back()));
    if (tables.size() == 1) fmt::print("{}\n{}", headOf(cluster, collective), columns());
    fmt::print("{}", linesOf(tables.back()));
    std::fflush(stdout);
  }
  fmt::print("\n{}", notesOf(tables));
}

int simulateOrComplain(const Options& options) {
  try {
    simulateAll(options);
    return kDone;
  } catch (const Error& error) {
    std::fflush(stdout);
    fmt::print(stderr, "tutti-sim: {}\n", error.what());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "tutti-sim: there is not enough memory for so many ranks: simulate fewer nodes\n");
  }
  return kTrouble;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Says how long a collective would take on a cluster that need not be there: runs the library's own schedules of "
      "all ranks in simulated time. Ends with 0, or with 2 and the reason on standard error.",
      "tutti-sim");
  app.add_option("--system", options.system, "hgx-h100, dgx-a100 or ethernet")->capture_default_str();
  app.add_option("--nodes", options.nodes, "Hosts")->capture_default_str();
  app.add_option("--ranks-per-node", options.ranksPerHost, "Ranks of each host (default: the system's)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--op", options.op, "The operation, as the measuring programs are called: all_reduce, alltoall, ...")
      ->capture_default_str();
  app.add_option("--size", options.size, "Bytes as nccl-tests count them, with K, M or G")->capture_default_str();
  app.add_option("--algo", options.algo, "One algorithm, or all that are of use")->capture_default_str();
  app.add_option("--channels", options.channels, "Lanes of each rank (default: the system's; 1 beyond 16384 ranks)")
      ->check(CLI::Range(1, 64));
  app.add_option("--root", options.root, "The root, of operations that have one")->capture_default_str();
  app.add_flag("--sweep", options.sweep, "Also every eighth power of two from 1K up to --size");
  app.set_version_flag("--version", std::string(kVersion), "Say which version this is");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kDone;
  } catch (const CLI::CallForVersion&) {
    fmt::print("tutti-sim of tutti {}\n", kVersion);
    return kDone;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "tutti-sim: {}\nTry --help.\n", error.what());
    return kTrouble;
  }
  return simulateOrComplain(options);
}

// What was printed may still be on its way: a full disk shows at the end, if not before.
int runAndFlush(int argc, char** argv) {
  try {
    const int status = run(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  } catch (const std::system_error&) {  // fmt's, of standard output
  }
  fmt::print(stderr, "tutti-sim: cannot write to standard output: {}\n", std::strerror(errno));
  return kTrouble;
}

}  // namespace
}  // namespace tutti::simtool

int main(int argc, char** argv) { return tutti::simtool::runAndFlush(argc, argv); }

#include "sim/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/byte_size.h"
#include "base/command_name.h"
#include "base/error.h"
#include "catalog/known_systems.h"
#include "sim/node.h"
#include "sim/simulate.h"

namespace tutti::simtool {
namespace {

constexpr size_t kFirstOfSweep = 1 << 10, kSweepFactor = 8;

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

size_t bytesOf(const std::string& text) {
  constexpr size_t kMost = size_t{1} << 44;
  const std::optional<size_t> bytes = parseByteSize(text);
  if (!bytes || *bytes < 1 || *bytes > kMost)
    refuse(fmt::format("invalid size '{}': a number of bytes up to 16384G, with K, M or G for powers of 1024", text));
  return *bytes;
}

bool isSimulated(Collective collective) {
  return plainOf(collective) == collective && collective != Collective::kSendRecv;
}

std::string systemNames() {
  std::string text = "Systems:\n";
  for (const topology::KnownSystem& one : topology::knownSystems())
    text += fmt::format("  {:<26}{}\n", one.name, one.about);
  return text;
}

}  // namespace

void describe(CLI::App& app, Options& options) {
  app.footer(systemNames());
  CLI::Option* system = app.add_option("--system", options.system, "What each node is: one of the systems below");
  app.add_option("--input", options.file,
                 "What each node is: a file in NCCL's XML (NCCL_TOPO_FILE) or in hwloc's (lstopo); with neither, nodes "
                 "are like the machine at hand")
      ->excludes(system);
  app.add_option("--nodes", options.nodes, "How many")->capture_default_str();
  app.add_option("--ranks-per-node", options.ranksPerNode,
                 "Ranks of each node (default: one for each GPU, or for each memory node where there is none)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--op", options.op, "The operation, as the measuring programs are called: all_reduce, alltoall, ...")
      ->capture_default_str();
  app.add_option("--size", options.size, "Bytes as nccl-tests count them, with K, M or G")->capture_default_str();
  app.add_option("--algo", options.algo, "One algorithm, or all that are of use")->capture_default_str();
  app.add_option("--channels", options.channels,
                 "Lanes of each rank (default: 4 on GPUs and 1 on cores; 1 beyond 16384 ranks)")
      ->check(CLI::Range(1, 64));
  app.add_option("--root", options.root, "The root, of operations that have one")->capture_default_str();
  app.add_flag("--sweep", options.sweep, "Also every eighth power of two from 1K up to --size");
  app.add_option("--plot", options.plotFile, "Draw bandwidth and time over size into this file, as SVG");
}

sim::Cluster clusterOf(const Options& options) {
  const Node node = nodeOf(options);
  sim::Cluster cluster = sim::clusterOf(node.system, node.name, options.nodes, options.ranksPerNode);
  if (cluster.ranks() > sim::kMostRanksOfRuntime) cluster.channels = 1;  // more take minutes, and gigabytes
  if (options.channels != 0) cluster.channels = options.channels;
  return cluster;
}

Collective collectiveOf(const Options& options) {
  std::string names;
  for (int number = 0; number < kCollectives; ++number) {
    const auto one = static_cast<Collective>(number);
    if (!isSimulated(one)) continue;
    if (options.op == commandName(one)) return one;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", commandName(one));
  }
  refuse(fmt::format("'{}' is no operation; choose one of: {}", options.op, names));
}

std::vector<size_t> sizesOf(const Options& options) {
  const size_t last = bytesOf(options.size);
  std::vector<size_t> sizes;
  if (options.sweep)
    for (size_t bytes = kFirstOfSweep; bytes < last; bytes *= kSweepFactor) sizes.push_back(bytes);
  sizes.push_back(last);
  return sizes;
}

}  // namespace tutti::simtool

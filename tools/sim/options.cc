#include "sim/options.h"

#include <CLI/CLI.hpp>

#include "sim/node.h"
#include "sim/simulate.h"

namespace tutti::simtool {
void describe(CLI::App& app, Options& options) {
  app.footer("Systems:\n" + tools::knownNames());
  CLI::Option* system = app.add_option("--system", options.system, "What each node is: one of the systems below");
  app.add_option("--input", options.file,
                 "What each node is: a file in NCCL's XML (NCCL_TOPO_FILE) or in hwloc's (lstopo); with neither, nodes "
                 "are like the machine at hand")
      ->excludes(system);
  tools::describe(app, options);
  app.add_option("--algo", options.algo, "One algorithm, or all that are of use")->capture_default_str();
  app.add_option("--channels", options.channels,
                 "Lanes of each rank (default: 4 on GPUs and 1 on cores; 1 beyond 16384 ranks)")
      ->check(CLI::Range(1, 64));
  app.add_option("--root", options.root, "The root, of operations that have one")->capture_default_str();
  app.add_option("--plot", options.plotFile, "Draw bandwidth and time over size into this file, as SVG");
}

sim::Cluster clusterOf(const Options& options) {
  const Node node = nodeOf(options);
  sim::Cluster cluster = sim::clusterOf(node.system, node.name, options.nodes, options.ranksPerNode);
  if (cluster.ranks() > sim::kMostRanksOfRuntime) cluster.channels = 1;  // more take minutes, and gigabytes
  if (options.channels != 0) cluster.channels = options.channels;
  return cluster;
}

}  // namespace tutti::simtool

// What tutti-sim is asked for.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "sim/cluster.h"

namespace tutti::simtool {

struct Options {
  std::string op = "all_reduce", size = "64M", algo = "all";
  std::optional<std::string> system, file, plotFile;
  int nodes = 1, ranksPerNode = 0, channels = 0, root = 0;
  bool sweep = false;
};

// Adds the options, which write into `options`.
void describe(CLI::App& app, Options& options);

// These throw Error(kInvalidArgument) that says what there is.
sim::Cluster clusterOf(const Options& options);
Collective collectiveOf(const Options& options);
// Those of the table: one, or with --sweep all up to it.
std::vector<size_t> sizesOf(const Options& options);

}  // namespace tutti::simtool

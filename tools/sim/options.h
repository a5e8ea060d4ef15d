// What tutti-sim is asked for.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "asked.h"
#include "sim/cluster.h"

namespace tutti::simtool {

struct Options : tools::Asked {
  std::string algo = "all";
  std::optional<std::string> system, file, plotFile;
  int channels = 0, root = 0;
};

// Adds the options, which write into `options`.
void describe(CLI::App& app, Options& options);

// Throws Error(kInvalidArgument) that says what there is.
sim::Cluster clusterOf(const Options& options);

}  // namespace tutti::simtool

// tutti-sim: how long a collective would take on a cluster that need not be there.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <new>

#include "base/error.h"
#include "command.h"
#include "flushed.h"
#include "sim/candidates.h"
#include "sim/options.h"
#include "sim/table.h"
#include "writable.h"

namespace tutti::simtool {
namespace {

constexpr int kTrouble = 2;

// Where algorithms are compared none takes minutes; one alone may.
sim::Ways waysOf(const Candidates& candidates) {
  sim::Ways ways;
  if (candidates.alone) return ways;
  ways.mostEvents = 25'000'000;
  ways.mostBytes = size_t{256} << 20;
  return ways;
}

Table tableOf(const Candidates& candidates, const sim::Cluster& cluster, const sim::Message& message, Prover& prover) {
  Table table{cluster, message, {}, candidates.leftOut, {}};
  for (const schedule::Algorithm each : candidates.run) try {
      sim::check(each, cluster, message);
      const bool proved = prover.proves(each, cluster, message);
      table.rows.push_back({each, proved, sim::simulate(each, cluster, message, waysOf(candidates))});
    } catch (const Error& error) {
      if (candidates.alone || error.code() != ErrorCode::kInvalidArgument) throw;
      table.refused.push_back(fmt::format("{}: {}", nameOf(each), error.what()));
    }
  if (table.rows.empty())
    throw Error(ErrorCode::kInvalidArgument, fmt::format("no algorithm can do that; {}", table.refused.back()));
  std::ranges::stable_sort(table.rows, {}, [](const Row& row) { return row.result.us; });
  return table;
}

[[noreturn]] void refusePlot(const std::string& name) {
  throw systemError(fmt::format("cannot write the plot to '{}'", name), errno);
}

void requireWritable(const std::string& name) {
  if (!tools::isWritable(name)) refusePlot(name);
}

void writePlot(const std::string& name, const std::vector<Table>& tables) {
  std::ofstream file(name);
  if (!(file << plotOf(tables) << std::flush)) refusePlot(name);
}

void simulateAll(const Options& options) {
  const sim::Cluster cluster = clusterOf(options);
  const Collective collective = tools::collectiveOf(options);
  const std::vector<size_t> sizes = tools::sizesOf(options);
  const Candidates candidates = candidatesOf(options.algo, cluster, collective);
  if (options.plotFile) requireWritable(*options.plotFile);
  Prover prover;
  std::vector<Table> tables;
  for (const size_t bytes : sizes) {
    tables.push_back(tableOf(candidates, cluster, {collective, bytes, options.root}, prover));
    if (tables.size() == 1) fmt::print("{}\n{}", headOf(cluster, collective), columns());
    fmt::print("{}", linesOf(tables.back()));
    std::fflush(stdout);
  }
  fmt::print("\n{}", notesOf(tables));
  if (options.plotFile) writePlot(*options.plotFile, tables);
}

// Of so many ranks that memory runs out.
void simulateWithinMemory(const Options& options) try { simulateAll(options); } catch (const std::bad_alloc&) {
  throw Error(ErrorCode::kSystem, "there is not enough memory for so many ranks: simulate fewer nodes");
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Says how long a collective would take on a cluster that need not be there: runs the library's own schedules of "
      "all ranks in simulated time. Ends with 0, or with 2 and the reason on standard error.",
      "tutti-sim");
  describe(app, options);
  return tools::runCommand(app, argc, argv, kTrouble, [&] { simulateWithinMemory(options); });
}

}  // namespace
}  // namespace tutti::simtool

int main(int argc, char** argv) {
  using namespace tutti;
  return tools::flushed("tutti-sim", simtool::kTrouble, [=] { return simtool::run(argc, argv); });
}

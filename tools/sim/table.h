// What tutti-sim prints: the cluster and the message in a few lines, a table of algorithms, and what to know about it.
#pragma once
#include <string>
#include <vector>

#include "sim/simulate.h"

namespace tutti::simtool {

struct Row {
  schedule::Algorithm algorithm = schedule::Algorithm::kRing;
  bool proved = false;
  sim::Result result;
};

struct Table {
  sim::Cluster cluster;
  sim::Message message;
  std::vector<Row> rows;             // the fastest first
  std::vector<std::string> leftOut;  // "name: reason", whatever the size
  std::vector<std::string> refused;  // the same, of those that the simulator would not run
};

std::string headOf(const sim::Cluster& cluster, Collective collective);
std::string columns();
std::string linesOf(const Table& table);
// The best, who was left out, and what was not run in full.
std::string notesOf(const std::vector<Table>& tables);

// An SVG document: a curve for each algorithm.
std::string plotOf(const std::vector<Table>& tables);

}  // namespace tutti::simtool

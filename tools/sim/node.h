// What each node of the cluster is.
#pragma once
#include <string>

#include "sim/options.h"
#include "topology/system.h"

namespace tutti::simtool {

struct Node {
  topology::System system;
  std::string name;
};

// A known system, that of a file, or the machine at hand. What had to be assumed about the latter two goes to standard
// error. Throws Error for a file that cannot be read, and for a system that is unknown.
Node nodeOf(const Options& options);

}  // namespace tutti::simtool

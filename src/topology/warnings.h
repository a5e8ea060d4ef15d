// What is wrong with a system, or will mislead who plans with it.
#pragma once
#include <string>
#include <vector>

#include "topology/system.h"

namespace tutti::topology {

// Whole sentences: equal GPUs with unequal numbers of NVLinks, a fabric that is hidden, NICs with no GPU at their
// memory node, and PCI links that are said to be far slower than what is below them.
std::vector<std::string> warningsOf(const System& system);

}  // namespace tutti::topology

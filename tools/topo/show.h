// A system as text for a terminal.
#pragma once
#include <string>

#include "topology/system.h"

namespace tutti::topo {

// Its tree, the path types between GPUs and NICs, the remarks and the warnings.
std::string showText(const topology::System& system);

// The same for programs, with all links and paths: keys as docs/topology.md has them.
std::string showJson(const topology::System& system);

}  // namespace tutti::topo

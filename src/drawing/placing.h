// Where each device of the tree stands: memory nodes side by side, below each its switches, and in one row at the foot
// of all the GPUs, with stacks of NICs beside them.
#pragma once
#include <string>
#include <vector>

#include "drawing/box.h"
#include "drawing/shown.h"
#include "topology/system.h"

namespace tutti::drawing {

struct Host {
  std::string name;        // "" where the system is one host
  std::vector<int> nodes;  // memory nodes
  Box box;                 // its foot is that of the memory nodes; what lies below may make it longer
};

struct Placing {
  std::vector<Box> boxes;   // of each device that is in the tree
  std::vector<Box> panels;  // of each memory node, around all that is below it
  std::vector<Host> hosts;
  double width = 0, bottom = 0;  // of the hosts
};

// From `top` on.
Placing placingOf(const topology::System& system, const Shown& shown, double top);

// The bar above the memory nodes of a host, which stands for the links between them; for several of them only.
Box socketsBar(const Host& host, const Placing& placing);

}  // namespace tutti::drawing

// The NVSwitches of a system, in planes: those that reach the same GPUs stand together on a bar below these.
#pragma once
#include <vector>

#include "drawing/placing.h"
#include "topology/system.h"

namespace tutti::drawing {

struct Plane {
  std::vector<int> switches, gpus;
  Box bar;
  std::vector<Box> boxes;  // of each switch
};

// Those that are shown; the bars begin at `top`.
std::vector<Plane> planesOf(const topology::System& system, const Shown& shown, const Placing& placing, double top);

// What a GPU has to a plane, all together.
struct Bundle {
  int count = 0;
  double gigabytes = 0;
};
Bundle bundleOf(const topology::System& system, int gpu, const Plane& plane);

}  // namespace tutti::drawing

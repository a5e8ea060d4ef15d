// Rings over the GPUs, in colours.
#pragma once
#include <string>
#include <vector>

#include "drawing/canvas.h"
#include "drawing/wires.h"
#include "topology/paths.h"
#include "topology/system.h"

namespace tutti::drawing {

inline constexpr size_t kMostRings = 8;

// GPUs one after the other; the last is followed by the first.
struct Ring {
  std::string name;
  std::vector<int> order;  // positions in System::devices
};

// A wire for each hop between GPUs that are shown, in that layer: of rings[i] those from begins[i] on.
struct RingWires {
  std::vector<Wire> wires;
  std::vector<size_t> begins;  // and a last one, the end
};
RingWires wiresOf(const std::vector<Ring>& rings, const Shown& shown, int layer);

// Draws them with the types of the paths that the hops take; the tracks are below `top`.
void drawRings(Node in, const RingWires& rings, const topology::Paths& paths, const Placing& placing, double top);

// A line for each below `at`: its order and its paths. Returns the height and the width of them.
Point drawRingKeys(Node in, const std::vector<Ring>& rings, const topology::System& system,
                   const topology::Paths& paths, Point at);

}  // namespace tutti::drawing

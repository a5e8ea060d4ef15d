// NVLinks: straight from GPU to GPU, and to NVSwitches.
#pragma once
#include <vector>

#include "drawing/canvas.h"
#include "drawing/fabric.h"
#include "drawing/wires.h"
#include "topology/system.h"

namespace tutti::drawing {

inline constexpr size_t kMostDirect = 256;

// Bundles from GPU to GPU that are shown, and a wire for each, in that layer.
struct DirectLinks {
  std::vector<const topology::Link*> links;
  std::vector<Wire> wires;
  size_t leftOut = 0;  // beyond kMostDirect
};
DirectLinks directLinks(const topology::System& system, const Shown& shown, int layer);

// Their tracks are below `top`; the labels come over whatever else is drawn there.
void drawDirect(Node in, const topology::System& system, const DirectLinks& direct, const Placing& placing, double top);
void labelDirect(Node in, const DirectLinks& direct, double top);

// The bundle of each GPU, and the NVSwitches that it leads to.
void drawPlane(Node in, const topology::System& system, const Plane& plane, const Placing& placing);

}  // namespace tutti::drawing

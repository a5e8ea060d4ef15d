// Hosts with their memory nodes, and all that is below these on the bus.
#pragma once
#include "drawing/canvas.h"
#include "drawing/placing.h"
#include "drawing/shown.h"
#include "topology/system.h"

namespace tutti::drawing {

// `bottom` is that of the hosts, beyond what lies below the GPUs.
void drawTree(Node in, const topology::System& system, const Shown& shown, const Placing& placing, double bottom);

}  // namespace tutti::drawing

// A system as a picture.
#pragma once
#include <string>
#include <vector>

#include "drawing/rings.h"
#include "topology/system.h"

namespace tutti::drawing {

// The GPUs in the order of their numbers: the ring of ranks that nobody has ordered. None of fewer than two.
std::vector<Ring> ringByNumber(const topology::System& system);

// An SVG document, of the same system always the same: hosts with their memory nodes, switches, GPUs and NICs, NVLinks
// and NVSwitches below, and the rings over them. It needs no script and nothing from elsewhere, and has colours for a
// light and for a dark reader. Of huge systems it says what it leaves out. The system has links.
std::string drawSystem(const topology::System& system, const std::string& title, const std::vector<Ring>& rings);

}  // namespace tutti::drawing

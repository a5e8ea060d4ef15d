// What of a system is drawn: of a huge one, so much as one can look at.
#pragma once
#include <string>
#include <vector>

#include "topology/system.h"

namespace tutti::drawing {

inline constexpr size_t kMostInTree = 256, kMostNvSwitches = 32;

struct Shown {
  std::vector<bool> inTree, inFabric;  // of each device
  std::string leftOut;                 // a sentence; "": nothing is

  bool has(int device) const { return inTree[static_cast<size_t>(device)] || inFabric[static_cast<size_t>(device)]; }
};

// Ports count with their NICs. NVSwitches with NVLinks are in the fabric, wherever they are on the bus.
Shown shownOf(const topology::System& system);

}  // namespace tutti::drawing

// What a system is shown without.
#pragma once
#include <vector>

#include "topology/system.h"

namespace tutti::topology {

// Takes out those devices (by position) and all that is below them. For systems without links.
void removeDevices(System& system, const std::vector<bool>& unwanted);

// Takes out NICs without a port, which it remarks, and switches with nothing below. For systems without links.
void removeIdle(System& system);

}  // namespace tutti::topology

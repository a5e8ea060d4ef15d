// The order of a system's ports.
#pragma once
#include "topology/system.h"

namespace tutti::topology {

// Gives every port that has no number one, in the order of their names ("mlx5_2" is before "mlx5_10").
void numberPorts(System& system);

}  // namespace tutti::topology

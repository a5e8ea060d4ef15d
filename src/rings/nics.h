// Who sends what leaves a host through which NIC.
#pragma once
#include <string>
#include <vector>

#include "topology/paths.h"
#include "topology/system.h"

namespace tutti::rings {

struct Nic {
  std::string name;
  double gigabytes = 0;  // a second, in each direction
};

struct Nics {
  std::vector<Nic> nics;
  std::vector<int> of;  // of each GPU a position in `nics`; empty: there is no port
};

// Each GPU has the port that is nearest; where there are more ports than GPUs, and each GPU is the nearest to one, all
// of those. Bandwidths are those of the paths. `gpus`, `ports`: positions in System::devices.
Nics nicsOf(const topology::System& system, const topology::Paths& paths, const std::vector<int>& gpus,
            const std::vector<int>& ports);

}  // namespace tutti::rings

// What a device on the bus is to who plans collectives, by its class and its maker.
#pragma once
#include <optional>

#include "topology/system.h"

namespace tutti::topology {

// nullopt for what is of no use: disks, the display of a service processor, controllers.
std::optional<DeviceKind> usefulKind(const Pci& pci);

}  // namespace tutti::topology

// A description that leaves out much, as those of clouds do, completed by what was found on a machine of that kind.
#pragma once
#include "topology/system.h"

namespace tutti::detect {

// Both without links, and so is the result. Where a device is in the description, it stays; its attributes that are
// unknown are those of the same one that was found: the memory node of that number, the device of that bus id, or the
// NIC with a port of that name. What was found besides is added, below what it is below on the machine; in the remarks
// is what was added, and what was not found. Throws Error(kInvalidArgument) for a description of several hosts.
topology::System completed(topology::System partial, const topology::System& found);

}  // namespace tutti::detect

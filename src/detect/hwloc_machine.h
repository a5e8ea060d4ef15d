// The machine at hand, as hwloc describes it.
#pragma once
#include <string>

namespace tutti::detect {

// hwloc's XML of this machine, with its devices. Takes a tenth of a second and more: not for a communicator's start,
// which has detectMachine(). Throws Error(kSystem) where hwloc cannot tell.
std::string hwlocXmlOfThisMachine();

}  // namespace tutti::detect

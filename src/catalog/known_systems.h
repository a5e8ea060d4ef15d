// Systems that are known by name, made from what their makers publish.
#pragma once
#include <span>
#include <string_view>

#include "topology/system.h"

namespace tutti::topology {

struct KnownSystem {
  std::string_view name;
  std::string_view about;  // a line
  System (*make)();        // without links
};

std::span<const KnownSystem> knownSystems();

// With links; what is assumed about it is in the remarks. Throws Error(kInvalidArgument), with all names, for an
// unknown one.
System makeKnownSystem(std::string_view name);

}  // namespace tutti::topology

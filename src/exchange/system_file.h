// A description of a system, in whichever format: NCCL's XML or hwloc's.
#pragma once
#include <string>
#include <string_view>

#include "topology/system.h"

namespace tutti::topology {

// The devices that `text` describes, without links, for who adds to them. Throws Error(kInvalidArgument), with the
// source and the place, for a text of neither format, or with numbers that nothing can have, or larger or deeper than
// any.
System readDevices(std::string_view text, const std::string& source);

// The same with links. What is missing in it or unknown is told in the remarks.
System readSystem(std::string_view text, const std::string& source);

// The same of a file. Throw Error(kSystem) where it cannot be read.
System readDevicesFile(const std::string& path);
System readSystemFile(const std::string& path);

}  // namespace tutti::topology

#include "base/command_name.h"

#include <algorithm>

namespace tutti {

// The measuring program of the all-to-all has nccl-tests' name.
std::string commandName(Collective collective) {
  if (collective == Collective::kAllToAll) return "alltoall";
  std::string name(nameOf(collective));
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace tutti

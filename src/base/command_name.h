// What an operation is called where words have no hyphens: in files, and as the measuring programs begin.
#pragma once
#include <string>

#include "base/types.h"

namespace tutti {

// "all_reduce", "alltoall".
std::string commandName(Collective collective);

}  // namespace tutti

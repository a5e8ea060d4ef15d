// What an operation is called where words have no hyphens: in files, and as the measuring programs begin.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/types.h"

namespace tutti {

// "all_reduce", "alltoall", "sendrecv".
std::string commandName(Collective collective);

// The other way, as people write it: in any case of letters, with hyphens or underscores or none.
std::optional<Collective> operationCalled(std::string_view name);

}  // namespace tutti

// An explanation as JSON. docs/json.md has its keys.
#pragma once
#include <string>

#include "team/executor.h"

namespace tutti::comm {

// Of a collective on a communicator of so many ranks.
std::string toJson(const Explanation& explanation, const Call& call, int ranks);

}  // namespace tutti::comm

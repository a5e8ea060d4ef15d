// How a sweep's choices did, for people.
#pragma once
#include <string>

#include "plan/profile.h"
#include "tune/sweep.h"

namespace tutti::tune {

// A line for each cell whose choice takes more than kNear times the least time, or, with `all`, for each cell; at the
// end what came of all of them.
std::string tableOf(const Sweep& sweep, const plan::Profile& prices, bool all);

}  // namespace tutti::tune

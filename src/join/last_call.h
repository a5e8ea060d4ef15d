// A rank fails before it has a connection to the root to say so over: it calls the root for this alone.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "wire/join_request.h"

namespace tutti::control {

// The root tells all others that this rank will not come, and why. Blocks until it knows, which is for a second at
// most: where nobody answers by then, the others wait for their deadline. A rank that is led calls no root but one of
// this process. Never fails. Any thread.
void tellRoot(const JoinRequest& request, const std::function<std::string()>& why) noexcept;

// Of a rank whose join its own process has given up.
std::string gaveUpJoining(std::string_view who);

}  // namespace tutti::control

// How the root is called, and what it is told on a line that stands.
#pragma once
#include <string>
#include <vector>

#include "wire/dial.h"
#include "wire/join_request.h"
#include "wire/messages.h"

namespace tutti::control {

Dial::Target targetOfRoot(const JoinRequest& request);
Hello helloOf(const JoinRequest& request, const RankAddress& self, const Line& root);

// These names, or none where TUTTI_UNIX_SOCKETS=0.
std::vector<std::string> ifAllowed(const Network& network, std::vector<std::string> unixNames);

}  // namespace tutti::control

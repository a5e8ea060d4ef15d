// What to do when ranks do not find each other: it depends on how they came to know where to meet.
#pragma once
#include <string>

#include "control/unique_id.h"

namespace tutti::control {

// What a user calls the secret that he gives.
inline constexpr const char* kSecretNames = "TUTTI_SECRET (or TUTTI_SECRET_FILE)";

// Nobody is at the root's addresses.
std::string whenNobodyIsThere(const UniqueId& id);
// One end of a connection has another secret, or means another job: what it is, and what to do.
std::string whatDiffers(const UniqueId& id);
std::string whenTheSecretDiffers(const UniqueId& id);
// Some ranks have not come to the root.
std::string whenSomeAreMissing(const UniqueId& id);
std::string whenTwoAreOneRank(const UniqueId& id);
// What the root says when its time is over.
std::string rootIsOver(const UniqueId& id);

}  // namespace tutti::control

// What to do when ranks do not find each other: it depends on how they came to know where to meet.
#pragma once
#include <string>

#include "control/unique_id.h"

namespace tutti::control {

// Nobody is at the root's addresses.
std::string whenNobodyIsThere(const UniqueId& id);
// One end of a connection has another secret, or means another job.
std::string whenTheSecretDiffers(const UniqueId& id);
// Where the root is.
std::string rootProcess(const UniqueId& id);
// What the root says when its time is over.
std::string rootIsOver(const UniqueId& id);

}  // namespace tutti::control

// What to do when ranks do not find each other: it depends on how they came to know where to meet.
#pragma once
#include <string>

#include "job/unique_id.h"

namespace tutti::control {

// Two jobs of one user and host have one name for where they meet.
inline constexpr const char* kGiveEachAJob =
    "Another job of yours seems to be meeting there, or another process was told to be rank 0 as well: give each job a "
    "TUTTI_JOB of its own, any text, and each process a rank of its own";
// What a user calls the secret that he gives.
inline constexpr const char* kSecretNames = "TUTTI_SECRET (or TUTTI_SECRET_FILE)";

// Nobody is at the root's addresses.
std::string whenNobodyIsThere(const UniqueId& id);
// One end of a connection has another secret, or means another job: what it is, and what to do.
std::string whatDiffers(const UniqueId& id);
std::string seeWhoListens(const UniqueId& id);
std::string whenTheSecretDiffers(const UniqueId& id);
// Some ranks have not come to the root.
std::string lookForThem(const UniqueId& id);
std::string whenTwoAreOneRank(const UniqueId& id);
// Where the root is.
std::string rootProcess(const UniqueId& id);
// What the root says when its time is over.
std::string rootIsOver(const UniqueId& id);

}  // namespace tutti::control

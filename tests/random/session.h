// A session: ranks as threads of one process or of several, some communicators, and a number of drawn operations, each
// result compared.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tutti/tutti.h"

namespace tutti::faults {

struct Session {
  uint64_t seed = 0;
  std::string variant;
  uint64_t operations = 0;
};

// Ends the program with status 1, and a text that says how to see it again, on the first wrong byte or error. Returns
// a description of what it ran over.
std::string runSession(const Session& session);

// Of it, the part of one process; and before that, on one of them, the ids that all need.
std::vector<tuttiUniqueId> makeIds(const Session& session);
void runProcess(const Session& session, const std::vector<tuttiUniqueId>& ids, int process);

}  // namespace tutti::faults

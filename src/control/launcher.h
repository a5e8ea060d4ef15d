// Who am I, according to the launcher's environment?
#pragma once
#include <optional>
#include <string>

#include "base/deadline.h"
#include "control/plane.h"

namespace tutti::control {

struct Launch {
  int rank = 0, size = 1;
  int localRank = -1, localSize = -1;  // -1: not told
  std::string source;                  // such as "TUTTI_RANK/TUTTI_SIZE/TUTTI_ID"
  // One of the two tells where to meet.
  std::optional<RawUniqueId> id;        // handed over whole (TUTTI_ID, in hex, or TUTTI_ID_FILE)
  std::optional<std::string> rootHost;  // else rank 0 listens at rootHost:rootPort
  uint16_t rootPort = 0;
  std::optional<Secret> secret;  // TUTTI_SECRET or TUTTI_SECRET_FILE (32 hex digits, or any text that is hashed)
};

// Reads the environment. Precedence and variables are in the table at the top of launcher.cc. Throws
// Error(kInvalidUsage) that lists what was looked for when no launcher is found, and for contradictions.
Launch readLaunch();

// The unique id to join with: the one handed over, or, for rootHost:rootPort, one that every rank derives from the
// address and the secret; rank 0 opens the root there. Throws Error.
UniqueId meetingPlace(const Launch& launch, const Network& network, Deadline deadline);

}  // namespace tutti::control

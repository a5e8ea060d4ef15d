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
  // One of the three tells where to meet.
  std::optional<RawUniqueId> id;        // handed over whole (TUTTI_ID, in hex)
  std::optional<std::string> idFile;    // a file that holds the hex, or will (TUTTI_ID_FILE)
  std::optional<std::string> rootHost;  // else rank 0 listens at rootHost:rootPort
  uint16_t rootPort = 0;                // 0: all ranks are on one host, and meet at a Unix socket
  std::string jobKey;                   // what the launcher calls the job: tells apart two at one place
  std::optional<Secret> secret;         // TUTTI_SECRET or TUTTI_SECRET_FILE (32 hex digits, or any text that is hashed)
};

// Reads the environment. Precedence and variables are in the table at the top of launcher.cc. Throws
// Error(kInvalidUsage) that lists what was looked for when no launcher is found, and for contradictions.
Launch readLaunch();

// 32 hex digits are the secret itself; any other text is hashed.
Secret secretFromText(const std::string& text);
// The text of a file of at most 64 KiB, without white space at its end. Throws Error(kInvalidUsage).
std::string readSmallFile(const std::string& path);

// The unique id to join with: the one handed over (a file is waited for until the deadline), or, for rootHost:rootPort,
// one that every rank derives from the address, the job key and the secret; rank 0 opens the root there. Throws Error.
UniqueId meetingPlace(const Launch& launch, const Network& network, Deadline deadline);

}  // namespace tutti::control

// What a launcher's environment says.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/unique_id.h"

namespace tutti::control {

struct LaunchInfo {
  int rank = 0, size = 1;
  int localRank = -1, localSize = -1;  // -1: not told
  std::string launcher;                // the row's name, such as "openmpi"
  std::string source;                  // the variables that were used, such as "TUTTI_RANK/TUTTI_SIZE/TUTTI_ID"
  // What tells where to meet; the first that is set counts, and one is.
  std::optional<UniqueId> id;         // handed over whole (TUTTI_ID, in hex)
  std::optional<std::string> idFile;  // a file that holds the hex, or will (TUTTI_ID_FILE)
  bool oneHost = false;               // all ranks are on one host: they meet at a Unix socket, where those may be used
  std::optional<std::string> rootHost;  // rank 0 listens at rootHost:rootPort
  uint16_t rootPort = 0;
  int pmi = -1;        // the descriptor of the process manager, through which rank 0 hands out a unique id
  int pmiKey = 0;      // which of the process's communicators this is: each needs a key of its own there
  std::string jobKey;  // what the launcher calls the job: tells apart two at one place
  std::optional<std::string> secret;  // the text of TUTTI_SECRET or TUTTI_SECRET_FILE
  std::vector<std::string> folders;   // where rank 0 may leave a name for ranks of its host: see chooseUserFolder()
};

// The longest file with a secret or a unique id.
inline constexpr size_t kMostFileBytes = size_t{64} << 10;

}  // namespace tutti::control

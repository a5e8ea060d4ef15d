// Who am I, according to the launcher's environment?
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "job/unique_id.h"
#include "launch/patience.h"
#include "net/network.h"
#include "settings/settings.h"

namespace tutti::control {

struct Launch {
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

// Reads the environment. Variables and precedence are in launcher_table.cc. Throws Error(kInvalidUsage) that lists what
// was looked for when no launcher is found, and for contradictions; Error(kInvalidArgument) for what is no number.
Launch readLaunch(const settings::Environment& environment = {});

// What the user has given for a secret: the text of TUTTI_SECRET or TUTTI_SECRET_FILE. Throws Error(kInvalidUsage) for
// both, and for a file that is not to be trusted.
std::optional<std::string> readSecret(const settings::Environment& environment = {});

// The longest file with a secret or a unique id.
inline constexpr size_t kMostFileBytes = size_t{64} << 10;

// The unique id to join with: the one handed over (a file is waited for), one that rank 0 hands out through the process
// manager, or one that every rank derives from the place, the job key and the secret. In the last two rank 0 opens the
// root. Throws Error, soon after the caller has lost interest; but a look-up of a host's name, which nothing can
// interrupt, is waited for.
// Where it is an id, the secret's text, if there is one, becomes a part of it (UniqueId::beside).
UniqueId meetingPlace(const Launch& launch, const Network& network, const Patience& patience);

// The same for an id that the program was handed: `secret` as readSecret() gives it. Throws Error(kSystem) when there
// is no memory to make a key of it.
UniqueId withSecret(UniqueId id, const std::optional<std::string>& secret, int rank);

}  // namespace tutti::control

// What this host is like, for the ranks of a communicator on its GPUs.
#pragma once
#include <span>
#include <string>

#include "base/bytes.h"
#include "site/host_word.h"
#include "topology/peer_info.h"
#include "topology/system.h"

namespace tutti::site {

// What `system` is for those ranks of `infos` that are on the host of `rank`.
HostWord wordOf(const topology::System& system, const std::string& source, std::span<const topology::PeerInfo> infos,
                int rank);

// What `rank`, which is this one, tells all others: nothing, unless it is the first of its host and links decide
// anything. Detects the machine, a tenth of a second, once a process. `file` (TUTTI_TOPO_FILE) describes it, and what
// is detected completes that; of one that is of no use it warns, once a process, and goes on without. Throws nothing
// for what cannot be found out, which is told.
Bytes wordAtHand(std::span<const topology::PeerInfo> infos, int rank, const std::string& file);

}  // namespace tutti::site

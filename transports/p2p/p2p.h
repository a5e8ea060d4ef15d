// "p2p": ranks that are threads of one process. The FIFOs lie in the process's own memory, nothing moves them.
#pragma once
#include <memory>

#include "link/transport.h"

namespace tutti::transports {

// `readsPeers`: long messages may be read where they lie (see link/peer_memory.h).
std::unique_ptr<link::Transport> makeP2p(bool readsPeers = true);

}  // namespace tutti::transports

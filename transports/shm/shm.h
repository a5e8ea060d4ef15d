// "shm": ranks that are processes of one host. A memory file (memfd) per edge holds the FIFOs of both directions and
// is mapped into both; nothing is ever in /dev/shm and nothing stays behind, however the processes end. The file is
// sealed: no rank can take memory away from under the other. What is not is refused, and the ranks go on over tcp.
#pragma once
#include <memory>

#include "link/transport.h"

namespace tutti::transports {

// `readsPeers`: long messages may be read where they lie (see link/peer_memory.h).
std::unique_ptr<link::Transport> makeShm(bool readsPeers = true);

}  // namespace tutti::transports

// "shm": ranks that are processes of one host. A memory file (memfd) per edge holds the FIFOs of both directions and
// is mapped into both; nothing is ever in /dev/shm and nothing stays behind, however the processes end.
#pragma once
#include <memory>

#include "link/transport.h"

namespace tutti::transports {

std::unique_ptr<link::Transport> makeShm();

}  // namespace tutti::transports

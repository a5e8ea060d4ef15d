// "p2p": ranks that are threads of one process. The FIFOs lie in the process's own memory, nothing moves them.
#pragma once
#include <memory>

#include "link/transport.h"

namespace tutti::transports {

std::unique_ptr<link::Transport> makeP2p();

}  // namespace tutti::transports

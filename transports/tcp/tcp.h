// "tcp": any two ranks that can connect. One non-blocking stream per edge carries both directions;
// sealed when the stream comes with keys.
#pragma once
#include <memory>

#include "link/transport.h"

namespace tutti::transports {

std::unique_ptr<link::Transport> makeTcp();

}  // namespace tutti::transports

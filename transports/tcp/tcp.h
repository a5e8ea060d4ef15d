// "tcp": any two ranks that can connect. One non-blocking stream per edge carries both directions.
#pragma once
#include <memory>

#include "link/transport.h"

namespace tutti::transports {

std::unique_ptr<link::Transport> makeTcp();

}  // namespace tutti::transports

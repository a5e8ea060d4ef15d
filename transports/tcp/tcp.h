// "tcp": any two ranks that can connect. One non-blocking stream per edge carries both directions;
// sealed when the stream comes with keys.
#pragma once
#include <memory>
#include <string>

#include "link/transport.h"

namespace tutti::transports {

// `congestion` as setCongestion takes it.
std::unique_ptr<link::Transport> makeTcp(std::string congestion = {});

}  // namespace tutti::transports

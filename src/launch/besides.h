// Ports beside those of other services.
#pragma once
#include <cstdint>

namespace tutti::control {

// Where another service of rank 0 has `port`, the root listens this far above it, within 1024-65535.
inline uint16_t besides(int port) {
  constexpr int kPortStep = 1789, kFirstPort = 1024, kPorts = 65536 - kFirstPort;
  return static_cast<uint16_t>(kFirstPort + (port - kFirstPort + kPortStep + kPorts) % kPorts);
}

}  // namespace tutti::control

// Which engines run the operations of a communicator on GPUs: kernels that wait for each other, streams that do.
// Pure: every rank decides the same from what all know.
#pragma once
#include <span>
#include <string>

#include "base/types.h"
#include "topology/peer_info.h"

namespace tutti::gpu {

struct DeviceEngines {
  bool kernels = true;
  bool streams = false;  // for what only moves data; without kernels, for everything
  std::string why;       // the choice in words, where it is not simply kernels
};

// Throws Error(kInvalidUsage) where neither can run what is asked for.
DeviceEngines enginesFor(std::span<const topology::PeerInfo> infos);

// Whether it can be done by copies alone.
constexpr bool onlyMoves(Collective collective) noexcept {
  return !reduces(collective) && collective != Collective::kBarrier;
}

}  // namespace tutti::gpu

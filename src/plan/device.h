// The choice for one call on GPUs: algorithm, protocol and channels, by the same loads as on a host (plan/cost.h) but
// with the costs of kernels that talk through memory.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "device/protocol.h"
#include "plan/plan.h"
#include "plan/protocols.h"

namespace tutti::plan {

// Segments that a slot of each protocol has room for, where slots have no more than so many bytes.
constexpr PerProtocol<uint32_t> segmentsIn(uint32_t slotBytes) noexcept {
  PerProtocol<uint32_t> most;
  for (const ProtocolRow& row : kProtocolRows)
    most[row.protocol] = (slotBytes < row.mostSlotBytes ? slotBytes : row.mostSlotBytes) / row.grain.bytes;
  return most;
}

struct DeviceMachine {
  int ranks = 1;
  int channels = 1;  // at most
  int hosts = 1;
  int ranksPerHost = 0;  // of the fullest host; 0: they have as many each
  // GB/s in each direction that a GPU's links carry inside its host, to whichever other GPU there, and to the next one
  // of a ring (schedule/row.h). 0 where that is not known: taken for no limit, and along a ring for what is carried to
  // any other.
  double gpuGBs = 0, ringGBs = 0;
  // GB/s that a GPU's way into the network carries in each direction while it alone sends, and while all of its host
  // do: they may share NICs. 0 where that is not known: the first is taken for the second, and that for no limit.
  double nicGBs = 0, networkGBs = 0;
  // Every link moves 128 bytes as a whole, so LL128 may be used: one GPU, or NVLink between all. False: PCIe.
  bool linesMoveWhole = true;
  int mostLinks = 64;  // that one block can serve, of each direction
  // Segments that a slot of each protocol has room for; in streams, those of Simple.
  PerProtocol<uint32_t> mostSegments = segmentsIn(slots::kScratchBytesOnGpu);
};

struct DeviceChoice {
  schedule::Algorithm algorithm = schedule::Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  int channels = 1;
  double predictedUs = 0;
};

// "ring by ll128 over 8 channels, predicted 12.3 us"
std::string describe(const DeviceChoice& choice);

struct DevicePlan {
  DeviceChoice best{};
  std::vector<DeviceChoice> others{};   // the rest, cheapest first
  std::vector<std::string> excluded{};  // "name: reason", of algorithms and of protocols
};

// All that are allowed and fit the machine, as chooseDevice() has them.
DevicePlan weighDevice(const Request& request, const DeviceMachine& machine, schedule::Allowed algorithms,
                       AllowedProtocols protocols, int forcedChannels);

// The cheapest that is allowed and fits the machine; what is forced is taken as it is. Never fails: where nothing that
// is allowed fits, all algorithms count, and then all protocols but for a forced one; and where still none does it is
// direct, for which the machine may be too large, and which may not be able to do what is asked for
// (gpu::requireRankOrder).
DeviceChoice chooseDevice(const Request& request, const DeviceMachine& machine, schedule::Allowed algorithms,
                          AllowedProtocols protocols, int forcedChannels);

// The cheapest for an operation that waits in streams, where every message is a copy; `algorithms` as above.
DeviceChoice chooseStreamed(const Request& request, const DeviceMachine& machine, schedule::Allowed algorithms);

}  // namespace tutti::plan

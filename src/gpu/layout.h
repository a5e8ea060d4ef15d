// How a communicator is laid out on its GPU: engines, channels, slots, and where everything lies in the one block of
// memory that a rank shares with its peers. Pure: every rank computes the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "device/program.h"
#include "schedule/rules.h"
#include "topology/peer_info.h"

namespace tutti::gpu {

struct GpuLayout {
  int size = 1;
  // With no kernels there are no channels; with no streams, no slots of theirs.
  bool kernels = true;
  uint32_t streamSlotBytes = 0;
  static constexpr uint32_t kStreamDepth = slots::kDepthInStreams;
  uint32_t channels = 1;         // of collectives
  uint32_t messageChannels = 1;  // of a message between two ranks; they come behind those of collectives
  uint32_t depth = slots::kDepthOnGpu;
  PerProtocol<uint32_t> slotBytes;
  // Every link moves a line of 128 bytes as a whole; known once the peers are (device/gpu_links.h).
  bool linesMoveWhole = false;
  // Some links go through host memory, whose slots have a length of their own and know Simple alone.
  bool bridged = false;
  // What links carry, as plan::DeviceMachine has it, and how many ranks the hosts have; known with the above.
  struct Links {
    int hosts = 1, ranksPerHost = 0;
    double gpuGBs = 0, ringGBs = 0, nicGBs = 0, networkGBs = 0;
  } links;

  uint32_t allChannels() const noexcept { return channels + messageChannels; }
  // Blocks of this communicator that may be on the GPU at once, for one of its ranks: a collective, a send, a receive.
  uint32_t blocks() const noexcept { return channels + 2 * messageChannels; }
};

// The same on every rank. `forced`: how many channels operations are to have; `slotBudget`: bytes that a rank may spend
// on the slots of Simple, which get shorter where there are many. Throws Error(kInvalidUsage) when the ranks can not
// all be on their GPUs at once, or when some have a GPU and some have none; see also enginesFor().
GpuLayout layoutOf(std::span<const topology::PeerInfo> infos, const schedule::ChannelRules& forced, size_t slotBudget);

// A rank's pool. Its owner reads what peers put into `inbound`, and peers raise its `released`.
class PoolLayout {
 public:
  explicit PoolLayout(const GpuLayout& shape);
  size_t bytes() const noexcept { return bytes_; }

  // The FIFO from `peer` to the owner: headers, then slots.
  size_t inbound(Protocol protocol, uint32_t channel, int peer) const noexcept;
  // Of the FIFO from the owner to `peer`: the counter that the peer raises.
  size_t released(Protocol protocol, uint32_t channel, int peer) const noexcept;
  // For operations that wait in streams, the FIFO from `peer` to the owner: marks and slots (engine/streamed.h); and of
  // that from the owner to `peer`, the words that say which slots are taken.
  size_t marks(int peer) const noexcept { return inboundStream(peer); }
  size_t streamSlots(int peer) const noexcept { return inboundStream(peer) + kMarkBytes; }
  size_t taken(int peer) const noexcept { return takenAt_ + static_cast<size_t>(peer) * kTakenBytes; }
  // Where `peer` writes what the owner then looks at, before anything else is done.
  size_t pattern(int peer) const noexcept { return static_cast<size_t>(peer) * kPatternBytes; }
  static constexpr size_t kPatternBytes = 4096;

 private:
  static constexpr size_t kMarkBytes = 128, kTakenBytes = 128;  // of a FIFO
  size_t fifoBytes(Protocol protocol) const noexcept;
  size_t inboundStream(int peer) const noexcept;
  GpuLayout shape_;
  size_t perChannel_ = 0;  // of `inbound`, all protocols
  size_t releasedAt_ = 0, inboundAt_ = 0, takenAt_ = 0, inboundStreamAt_ = 0, bytes_ = 0;
};

}  // namespace tutti::gpu

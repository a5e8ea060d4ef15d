#include "gpu/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "base/error.h"
#include "engine/streamed.h"
#include "gpu/engines.h"

namespace tutti::gpu {
namespace {

// Each channel of a bridge is a connection, and one keeps the host's memory busy.
constexpr uint32_t kMostBridgeChannels = 2;
constexpr uint32_t kMostChannels = 32, kMostMessageChannels = 4;

// Blocks that each rank of the most crowded GPU can have.
uint32_t blocksForEach(std::span<const topology::PeerInfo> infos) {
  struct Gpu {
    uint32_t ranks = 0, blocks = ~0u;
  };
  std::map<uint64_t, Gpu> gpus;
  for (const auto& info : infos) {
    Gpu& gpu = gpus[info.gpu];
    ++gpu.ranks;
    gpu.blocks = std::min(gpu.blocks, info.gpuBlocks);
  }
  uint32_t least = ~0u;
  for (const auto& [id, gpu] : gpus) least = std::min(least, gpu.blocks / gpu.ranks);
  return least;
}

void checkKinds(std::span<const topology::PeerInfo> infos) {
  for (size_t rank = 1; rank < infos.size(); ++rank)
    if ((infos[rank].device < 0) != (infos[0].device < 0))
      throw Error(
          ErrorCode::kInvalidUsage,
          fmt::format("rank 0 has its buffers {}, rank {} {}: all ranks of a communicator have them on GPUs, or "
                      "none (TUTTI_DEVICE, or config.device)",
                      infos[0].device < 0 ? "in host memory" : "on a GPU", rank,
                      infos[rank].device < 0 ? "in host memory" : "on a GPU"));
}

uint32_t slotBytesFor(size_t budget, size_t count, size_t most) {
  return static_cast<uint32_t>(std::clamp(std::bit_floor(budget / count), slots::kLeastBytesOnGpu, most));
}

// The most that a collective is to have; `most`, where one has as many as pay.
uint32_t mostForced(const schedule::ChannelRules& forced, uint32_t most) {
  uint32_t highest = 0;
  for (int number = 0; number < kCollectives; ++number) {
    const auto collective = static_cast<Collective>(number);
    if (collective == Collective::kSendRecv) continue;
    if (forced.of(collective) == 0) return most;
    highest = std::max(highest, static_cast<uint32_t>(forced.of(collective)));
  }
  return std::min(highest, most);
}

void layOutChannels(GpuLayout& shape, std::span<const topology::PeerInfo> infos, const schedule::ChannelRules& forced,
                    size_t slotBudget) {
  const uint32_t blocks = blocksForEach(infos);
  if (blocks < shape.blocks())
    throw Error(
        ErrorCode::kInvalidUsage,
        fmt::format("a GPU can hold {} blocks for each of its ranks, and {} are needed: they wait for each other, "
                    "so all must be on it at once. Put fewer ranks on a GPU, or destroy communicators that are "
                    "not needed any more",
                    blocks, shape.blocks()));
  shape.messageChannels = std::clamp(blocks / 4, 1u, kMostMessageChannels);
  const bool oneHost = std::ranges::all_of(infos, [&](const auto& info) { return info.hostId == infos[0].hostId; });
  const uint32_t most = std::min(oneHost ? kMostChannels : kMostBridgeChannels, blocks - 2 * shape.messageChannels);
  shape.channels = mostForced(forced, most);
  const auto ofMessages = static_cast<uint32_t>(forced.of(Collective::kSendRecv));
  shape.messageChannels = std::min({shape.messageChannels, most, ofMessages > 0 ? ofMessages : most});
  const size_t count = size_t{shape.allChannels()} * shape.depth * infos.size();
  const uint32_t slotBytes = slotBytesFor(slotBudget, count, slots::kMostBytesOnGpu);
  for (const Protocol each : kEveryProtocol) shape.slotBytes[each] = std::min(slotBytes, rowOf(each).mostSlotBytes);
}

}  // namespace

GpuLayout layoutOf(std::span<const topology::PeerInfo> infos, const schedule::ChannelRules& forced, size_t slotBudget) {
  checkKinds(infos);
  const DeviceEngines engines = enginesFor(infos);
  GpuLayout shape;
  shape.size = static_cast<int>(infos.size());
  shape.kernels = engines.kernels;
  if (engines.kernels && engines.streams) slotBudget /= 2;
  if (engines.kernels)
    layOutChannels(shape, infos, forced, slotBudget);
  else
    shape.channels = shape.messageChannels = 0;
  if (engines.streams)
    shape.streamSlotBytes =
        slotBytesFor(slotBudget, size_t{shape.kStreamDepth} * infos.size(), slots::kMostBytesInStreams);
  return shape;
}

PoolLayout::PoolLayout(const GpuLayout& shape) : shape_(shape) {
  const size_t peers = static_cast<size_t>(shape.size);
  for (const Protocol each : kEveryProtocol) perChannel_ += fifoBytes(each);
  releasedAt_ = peers * kPatternBytes;
  inboundAt_ = releasedAt_ + peers * shape.allChannels() * kProtocols * sizeof(link::Counter);
  takenAt_ = inboundAt_ + peers * shape.allChannels() * perChannel_;
  static_assert(GpuLayout::kStreamDepth * sizeof(engine::SlotFlag) <= kMarkBytes);
  static_assert(GpuLayout::kStreamDepth * sizeof(uint64_t) <= kTakenBytes);
  inboundStreamAt_ = takenAt_ + peers * kTakenBytes;
  bytes_ = inboundStream(shape.streamSlotBytes != 0 ? shape.size : 0);
}

size_t PoolLayout::inboundStream(int peer) const noexcept {
  return inboundStreamAt_ +
         static_cast<size_t>(peer) * (kMarkBytes + size_t{GpuLayout::kStreamDepth} * shape_.streamSlotBytes);
}

size_t PoolLayout::fifoBytes(Protocol protocol) const noexcept {
  return shape_.depth * (sizeof(link::SlotHeader) + shape_.slotBytes[protocol]);
}

size_t PoolLayout::inbound(Protocol protocol, uint32_t channel, int peer) const noexcept {
  size_t at = inboundAt_ + (static_cast<size_t>(peer) * shape_.allChannels() + channel) * perChannel_;
  for (const Protocol each : kEveryProtocol)
    if (each < protocol) at += fifoBytes(each);
  return at;
}

size_t PoolLayout::released(Protocol protocol, uint32_t channel, int peer) const noexcept {
  const size_t number =
      (static_cast<size_t>(peer) * shape_.allChannels() + channel) * kProtocols + static_cast<size_t>(protocol);
  return releasedAt_ + number * sizeof(link::Counter);
}

}  // namespace tutti::gpu

#include "comm/device_peers.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/error.h"

namespace tutti::comm {
namespace {

// Different for every writer and reader, so that memory which is mapped to the wrong place shows.
uint64_t seedOf(uint64_t communicator, int from, int to) {
  return communicator ^ (static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to)) * 0x9e3779b97f4a7c15;
}

}  // namespace

DevicePeers::DevicePeers(control::Plane& plane, engine::Device& device, std::span<const topology::Card> cards,
                         const DeviceShape& shape, Deadline deadline)
    : plane_(plane),
      device_(device),
      cards_(cards),
      shape_(shape),
      layout_(shape),
      own_(device.allocate(layout_.bytes())),
      mapped_(cards.size()),
      pools_(cards.size()) {
  const auto exported = plane_.allGather(device_.exportMemory(*own_), deadline);
  std::vector<std::string> troubles(cards.size());
  for (int peer = 0; peer < plane_.size(); ++peer)
    troubles[static_cast<size_t>(peer)] = map(peer, exported[static_cast<size_t>(peer)]);
  agree(std::move(troubles), "map", deadline);
  // Everyone has written to everyone; now everyone looks at what has come.
  troubles.assign(cards.size(), "");
  for (int peer = 0; peer < plane_.size(); ++peer)
    troubles[static_cast<size_t>(peer)] = tryOut(peer, seedOf(plane_.id(), peer, plane_.rank()));
  agree(std::move(troubles), "use", deadline);
}

// Returns what is in the way, or nothing. Writes the peer's pattern at once.
std::string DevicePeers::map(int peer, std::span<const std::byte> exported) try {
  const auto at = static_cast<size_t>(peer);
  if (cards_[at].hostId != cards_[static_cast<size_t>(plane_.rank())].hostId) return "it is on another host";
  if (peer == plane_.rank()) {
    pools_[at] = own_->data;
  } else {
    std::string why;
    const bool together = cards_[at].processToken == cards_[static_cast<size_t>(plane_.rank())].processToken;
    if (together && !device_.reach(cards_[at].device, why)) return why;
    mapped_[at] = device_.importMemory(exported);
    if (mapped_[at]->bytes != layout_.bytes())
      return fmt::format("its memory has {} bytes where {} were expected", mapped_[at]->bytes, layout_.bytes());
    pools_[at] = mapped_[at]->data;
  }
  device_.writePattern(poolOf(peer) + layout_.pattern(plane_.rank()), PoolLayout::kPatternBytes,
                       seedOf(plane_.id(), plane_.rank(), peer));
  return "";
} catch (const Error& error) {
  return error.what();
}

std::string DevicePeers::tryOut(int peer, uint64_t seed) try {
  const std::byte* const here = own_->data + layout_.pattern(peer);
  if (device_.checkPattern(here, PoolLayout::kPatternBytes, seed)) return "";
  return "what it wrote into this rank's memory did not arrive as it was (is the IOMMU set up for peer to peer?)";
} catch (const Error& error) {
  return error.what();
}

// All ranks learn whether all are content, and of the first trouble otherwise.
void DevicePeers::agree(std::vector<std::string> troubles, const char* what, Deadline deadline) {
  std::string mine;
  for (size_t peer = 0; peer < troubles.size() && mine.empty(); ++peer)
    if (!troubles[peer].empty())
      mine = fmt::format("rank {} (GPU {}) can not {} the memory of rank {} (GPU {}): {}", plane_.rank(),
                         cards_[static_cast<size_t>(plane_.rank())].device, what, peer, cards_[peer].device,
                         troubles[peer]);
  const auto said = plane_.allGather(std::as_bytes(std::span(mine)), deadline);
  for (const Bytes& one : said)
    if (!one.empty()) throw Error(ErrorCode::kCuda, std::string(reinterpret_cast<const char*>(one.data()), one.size()));
}

// Slots and headers lie with the receiver, the counter of released slots with the sender: whoever waits, polls its own
// memory.
link::Fifo DevicePeers::fifo(Protocol protocol, uint32_t channel, int from, int to) const noexcept {
  std::byte* const inbound = poolOf(to) + layout_.inbound(protocol, channel, from);
  auto* const headers = reinterpret_cast<link::SlotHeader*>(inbound);
  auto* const released = reinterpret_cast<link::Counter*>(poolOf(from) + layout_.released(protocol, channel, to));
  return {reinterpret_cast<std::byte*>(headers + shape_.depth), headers, released,
          shape_.slotBytes[static_cast<size_t>(protocol)], shape_.depth};
}

cuda::End DevicePeers::sendEnd(Protocol protocol, uint32_t channel, int peer) const noexcept {
  return {fifo(protocol, channel, plane_.rank(), peer), 0};
}

cuda::End DevicePeers::recvEnd(Protocol protocol, uint32_t channel, int peer) const noexcept {
  return {fifo(protocol, channel, peer, plane_.rank()), 0};
}

}  // namespace tutti::comm

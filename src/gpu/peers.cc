#include "gpu/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "process/log.h"
#include "proof/races.h"

namespace tutti::gpu {
namespace {

// Different for every writer and reader, so that memory which is mapped to the wrong place shows.
uint64_t seedOf(uint64_t communicator, int from, int to) {
  return communicator ^ (static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to)) * 0x9e3779b97f4a7c15;
}

}  // namespace

DevicePeers::DevicePeers(control::Plane& plane, device::Device& device, std::span<const topology::PeerInfo> infos,
                         const GpuLayout& shape, Deadline deadline, Bytes word)
    : plane_(plane),
      device_(device),
      infos_(infos),
      shape_(shape),
      layout_(shape),
      own_(device.allocateForPeers(layout_.bytes())),
      mapped_(infos.size()),
      pools_(infos.size()),
      word_(std::move(word)) {
  const auto exported = plane_.allGather(device_.exportMemory(*own_), deadline);
  std::vector<std::string> faults(infos.size());
  for (int peer = 0; peer < plane_.size(); ++peer)
    faults[static_cast<size_t>(peer)] = map(peer, exported[static_cast<size_t>(peer)]);
  // Everyone has written to everyone whom it can reach; then everyone looks at what has come.
  plane_.allGather({}, deadline);
  for (int peer = 0; peer < plane_.size(); ++peer) {
    std::string& fault = faults[static_cast<size_t>(peer)];
    if (fault.empty()) fault = tryOut(peer, seedOf(plane_.id(), peer, plane_.rank()));
  }
  const bool reachesAll = std::ranges::all_of(faults, &std::string::empty);
  agree(faults, reachesAll && shape_.kernels ? joints(exported) : device::JointView{}, deadline);
}

// Returns what is in the way, or nothing. Writes the peer's pattern at once.
std::string DevicePeers::map(int peer, std::span<const std::byte> exported) try {
  const auto at = static_cast<size_t>(peer);
  const bool here = infos_[at].hostId == infos_[static_cast<size_t>(plane_.rank())].hostId;
  if (!here && !device_.goesToOtherHosts(exported)) return "they are on different hosts, and no fabric joins these";
  if (peer == plane_.rank()) {
    pools_[at] = own_->data;
  } else {
    std::string why;
    const bool together = infos_[at].processToken == infos_[static_cast<size_t>(plane_.rank())].processToken;
    if (together && !device_.reach(infos_[at].device, why)) return why;
    mapped_[at] = device_.importMemory(exported, together);
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

// What joins this GPU to those of all ranks, each of which it reaches: the memory of another host, by a fabric.
device::JointView DevicePeers::joints(std::span<const Bytes> exported) const {
  device::JointView view;
  view.joints = device_.jointsTo(exported, view.why);
  for (size_t peer = 0; peer < infos_.size(); ++peer)
    if (infos_[peer].hostId != infos_[static_cast<size_t>(plane_.rank())].hostId)
      view.joints[peer] = device::GpuLinkType::kNvlink;
  return view;
}

// A pair is of use only when both can: everyone tells whom it can reach, and over what.
void DevicePeers::agree(const std::vector<std::string>& faults, const device::JointView& joints, Deadline deadline) {
  Bytes reached;
  for (const std::string& fault : faults) reached.push_back(std::byte{fault.empty()});
  const auto told = plane_.allGather(Writer().block(reached).block(encode(joints)).block(word_).take(), deadline);
  std::vector<std::span<const std::byte>> all;
  std::vector<device::JointView> views;
  for (const Bytes& one : told) {
    Reader in(one);
    all.push_back(in.block());
    views.push_back(device::decodeJoints(in.block()));
    const auto word = in.empty() ? std::span<const std::byte>() : in.block();
    words_.emplace_back(word.begin(), word.end());
  }
  const auto reaches = [&](size_t from, size_t to) { return all[from].size() > to && all[from][to] == std::byte{1}; };
  const auto self = static_cast<size_t>(plane_.rank());
  for (size_t a = 0; a < all.size(); ++a)
    for (size_t b = 0; b < all.size(); ++b) anyUnreached_ = anyUnreached_ || !reaches(a, b);
  for (size_t peer = 0; peer < all.size(); ++peer) {
    if (reaches(self, peer) && reaches(peer, self)) continue;
    unreached_.push_back(static_cast<int>(peer));
    whyUnreached_.push_back(faults[peer].empty() ? "that rank does not reach this one's memory" : faults[peer]);
    log::info("GPU {} and that of rank {} do not reach each other's memory ({}); their links go through the host",
              infos_[self].device, peer, whyUnreached_.back());
  }
  if (anyUnreached_ || !shape_.kernels) return;
  const device::JointVerdict verdict = device::judge(views);
  linesMoveWhole_ = verdict.linesMoveWhole;
  if (!verdict.text.empty() && self == 0) log::info("{}", verdict.text);  // the same on every rank
}

// Slots and headers lie with the receiver, the counter of released slots with the sender: whoever waits, polls its own
// memory.
link::Fifo DevicePeers::fifo(Protocol protocol, uint32_t channel, int from, int to) const noexcept {
  std::byte* const inbound = poolOf(to) + layout_.inbound(protocol, channel, from);
  auto* const headers = reinterpret_cast<link::SlotHeader*>(inbound);
  auto* const released = reinterpret_cast<link::Counter*>(poolOf(from) + layout_.released(protocol, channel, to));
  return {reinterpret_cast<std::byte*>(headers + shape_.depth),
          headers,
          released,
          shape_.slotBytes[protocol],
          shape_.depth,
          shape_.depth,
          0};
}

// A process has one address space, also for its GPUs, and its ranks tell each other plain addresses in their slots.
// Ranks of another process map all of these slots, and could write addresses into them: where there is one, nobody
// follows any.
device::Direct DevicePeers::direct(int peer) const noexcept {
  if (!shape_.kernels || infos_.size() > proof::kMostDirect || std::ranges::count(unreached_, peer) != 0)
    return device::Direct::kNever;
  const auto process = infos_[static_cast<size_t>(plane_.rank())].processToken;
  if (infos_[static_cast<size_t>(peer)].processToken != process) return device::Direct::kMapped;
  const bool alone = std::ranges::all_of(infos_, [&](const auto& info) { return info.processToken == process; });
  return alone ? device::Direct::kHere : device::Direct::kNever;
}

device::End DevicePeers::sendEnd(Protocol protocol, uint32_t channel, int peer) const noexcept {
  return {fifo(protocol, channel, plane_.rank(), peer), 0, direct(peer)};
}

device::End DevicePeers::recvEnd(Protocol protocol, uint32_t channel, int peer) const noexcept {
  return {fifo(protocol, channel, peer, plane_.rank()), 0, direct(peer)};
}

engine::StreamedEnd DevicePeers::streamed(int from, int to, int peer) const noexcept {
  return {poolOf(to) + layout_.streamSlots(from),
          reinterpret_cast<engine::SlotFlag*>(poolOf(to) + layout_.marks(from)),
          reinterpret_cast<uint64_t*>(poolOf(from) + layout_.taken(to)),
          shape_.streamSlotBytes,
          GpuLayout::kStreamDepth,
          peer};
}

engine::StreamedEnd DevicePeers::streamedSendEnd(int peer) const noexcept {
  return streamed(plane_.rank(), peer, peer);
}

engine::StreamedEnd DevicePeers::streamedRecvEnd(int peer) const noexcept {
  return streamed(peer, plane_.rank(), peer);
}

}  // namespace tutti::gpu

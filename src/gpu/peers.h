// The memory of all ranks of a communicator on GPUs, as this rank sees it: its own pool, and each peer's, mapped and
// tried out before anything depends on it.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "control/plane.h"
#include "device/device.h"
#include "device/gpu_links.h"
#include "engine/streamed.h"
#include "gpu/layout.h"

namespace tutti::gpu {

class DevicePeers {
 public:
  // Collective over the plane: allocates, tells, maps and tests. Blocks, at most until the deadline. Throws Error.
  // `word`: what else this rank tells all others then.
  DevicePeers(control::Plane& plane, device::Device& device, std::span<const topology::PeerInfo> infos,
              const GpuLayout& shape, Deadline deadline, Bytes word = {});

  size_t bytes() const noexcept { return own_->bytes; }
  // The peers whose memory can not be used, or who can not use this rank's; and whether any two ranks are so. The log
  // says why.
  const std::vector<int>& unreached() const noexcept { return unreached_; }
  // Of one of those: for people.
  const std::string& whyUnreached(int peer) const {
    return whyUnreached_[static_cast<size_t>(std::ranges::find(unreached_, peer) - unreached_.begin())];
  }
  bool anyUnreached() const noexcept { return anyUnreached_; }
  // Whether all memory is reached, and stores of 128 bytes arrive there as a whole.
  bool linesMoveWhole() const noexcept { return linesMoveWhole_; }
  // What each rank told.
  const std::vector<Bytes>& words() const noexcept { return words_; }
  // Whether links to that rank may be direct: the proof that ranks do not meet in memory is for so many ranks.
  device::Direct direct(int peer) const noexcept;
  // The sender's and the receiver's end of the links between this rank and `peer`.
  device::End sendEnd(Protocol protocol, uint32_t channel, int peer) const noexcept;
  device::End recvEnd(Protocol protocol, uint32_t channel, int peer) const noexcept;
  // The same for operations that wait in streams.
  engine::StreamedEnd streamedSendEnd(int peer) const noexcept;
  engine::StreamedEnd streamedRecvEnd(int peer) const noexcept;

 private:
  std::string map(int peer, std::span<const std::byte> exported);
  std::string tryOut(int peer, uint64_t seed);
  device::JointView joints(std::span<const Bytes> exported) const;
  void agree(const std::vector<std::string>& faults, const device::JointView& joints, Deadline deadline);
  std::byte* poolOf(int rank) const noexcept { return pools_[static_cast<size_t>(rank)]; }
  engine::StreamedEnd streamed(int from, int to, int peer) const noexcept;
  link::Fifo fifo(Protocol protocol, uint32_t channel, int from, int to) const noexcept;

  control::Plane& plane_;
  device::Device& device_;
  std::span<const topology::PeerInfo> infos_;
  GpuLayout shape_;
  PoolLayout layout_;
  std::unique_ptr<device::DeviceMemory> own_;
  std::vector<std::unique_ptr<device::DeviceMemory>> mapped_;
  std::vector<std::byte*> pools_;  // by rank
  Bytes word_;
  std::vector<Bytes> words_;
  std::vector<int> unreached_;
  std::vector<std::string> whyUnreached_;  // of each
  bool anyUnreached_ = false, linesMoveWhole_ = false;
};

}  // namespace tutti::gpu

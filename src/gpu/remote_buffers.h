// Registered buffers as direct links reach them: who may use them in place, and how ranks of other processes get there.
//
// Whoever registers a buffer offers it to those ranks. Each maps it, writes where into a table on its GPU, and says so;
// when all have, calls name the buffer by the number of its window. When a registration ends they are told, unmap it
// when their GPU has nothing to do, and say that too; then the number is free again. Nobody ever waits for any of this:
// as long as a window is not open, data goes through slots.
#pragma once
#include <array>
#include <bitset>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "control/plane.h"
#include "device/device.h"
#include "gpu/peers.h"
#include "team/registered.h"

namespace tutti::gpu {

class RemoteBuffers {
 public:
  RemoteBuffers(control::Plane& plane, device::Device& device, const DevicePeers& peers,
                std::span<const topology::PeerInfo> infos);

  // The table for DeviceComm::windows. Null where no peer is in another process.
  const device::MappedWindow* table() const noexcept {
    return reinterpret_cast<const device::MappedWindow*>(table_ ? table_->data : nullptr);
  }
  size_t bytes() const noexcept { return table_ ? table_->bytes : 0; }

  // One thread at a time: a registration begins and ends, and who may use a part of it now. `inGraph`: what is told may
  // be used as long as the communicator lives.
  void add(const void* handle, const comm::Range& buffer);
  void remove(const void* handle);
  bool empty() const noexcept { return buffers_.empty(); }
  device::Shared share(const comm::Range& part, bool inGraph);

  // What a peer has said that none says which is in order, and means well.
  struct Lie {
    int peer = -1;
    std::string what;
  };
  // Another thread, now and then: hears and answers the peers. `idle`: nothing of this rank runs on the GPU. The first
  // lie is returned, once; nothing is heard of anybody after it.
  std::optional<Lie> look(bool idle) noexcept;

 private:
  enum class Say : uint8_t { kOffer, kTaken, kRefused, kWithdrawn, kGone };
  struct Buffer {
    const void* handle;
    comm::Range range;
    bool here;
    uint16_t window;  // 0: it has none
    bool inGraph;
  };
  // One of this rank's. It is open when every answer has come, and none was a refusal.
  struct Window {
    bool taken = false, refused = false, withdrawn = false;
    size_t answersOwed = 0;
    UniqueFd descriptor;
  };
  struct Offer {
    uint16_t window;
    Bytes record;
  };
  struct Peer {
    int rank = -1;
    bool askedForStream = false;
    std::optional<SecureSocket> stream;  // for descriptors
    std::deque<uint16_t> toSend;         // this rank's windows
    std::deque<Offer> toMap;             // offers whose descriptor has not come
    std::array<std::unique_ptr<device::DeviceMemory>, device::kWindows> mapped;
    std::array<uint8_t, device::kWindows> owes{};  // answers, of this rank's windows
    std::bitset<device::kWindows> offered;         // from its offer until this rank has let it go
    std::vector<uint16_t> leaving;
  };

  bool opensHere(const comm::Range& buffer) const;
  uint16_t offer(const comm::Range& buffer);
  uint16_t freeWindow() const noexcept;
  void post(Peer& peer, const Bytes& offer, std::optional<uint16_t> descriptorOf);
  bool isOpen(uint16_t window) const noexcept;
  void tell(const Peer& peer, Say what, uint16_t window) const;
  void withdraw(uint16_t window);
  void hear(Peer& peer, std::span<const std::byte> message);
  void hearOffer(Peer& peer, Offer offer, bool needsDescriptor);
  void hearAnswer(Peer& peer, Say what, uint16_t window);
  void hearWithdrawal(Peer& peer, uint16_t window);
  void lookAt(Peer& peer, bool idle);
  void requestStream(Peer& peer);
  void passDescriptors(Peer& peer);
  void takeDescriptors(Peer& peer);
  void map(Peer& peer, const Offer& offer, const UniqueFd& descriptor);
  void tellKernels(const Peer& peer, uint16_t window, const device::MappedWindow& is);
  void unmap(Peer& peer);

  control::Plane& plane_;
  device::Device& device_;
  std::set<int> gpusHere_;       // of ranks of this process, but for this rank's
  bool severalHosts_ = false;    // among the peers
  std::vector<Buffer> buffers_;  // of the one thread
  std::unique_ptr<device::DeviceMemory> table_;
  std::mutex mutex_;         // guards what follows
  std::vector<Peer> peers_;  // those in other processes
  std::array<Window, device::kWindows> windows_;
  bool ended_ = false;
};

}  // namespace tutti::gpu

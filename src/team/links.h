// The connections of one communicator: made when a plan first needs them, kept until the end.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/plane.h"
#include "link/ear.h"
#include "link/registry.h"
#include "process/fd.h"
#include "topology/peer_info.h"

namespace tutti::comm {

class Links {
 public:
  // Messages between two ranks have links of their own, so that they run beside the collectives.
  static constexpr int kMessageChannel = 255;

  Links(control::Plane& plane, const link::Registry& registry, const std::vector<topology::PeerInfo>& infos,
        std::chrono::milliseconds connectTimeout);
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  // The connection to a peer on a channel, or null while it is being set up (each call helps it along; the peer must
  // ask for it too). Throws Error when it cannot be had. Any thread.
  link::Connection* find(int peer, int channel);

  link::Doorbell& bell() noexcept { return *reinterpret_cast<link::Doorbell*>(bellMemory_.data()); }
  // What this rank posts to several peers at once; null where they cannot have it.
  link::SharedSlots* sharedSlots() noexcept { return sharedSlots_ ? &*sharedSlots_ : nullptr; }
  // Made when a thread first sleeps on sockets; null where it can not be had. Any thread.
  link::Ear* ear() noexcept;
  size_t memoryBytes() const;
  size_t connectedPeers() const;
  std::string transportNames() const;  // "shm", "shm,tcp", …
  // Of the first link to that rank; empty while there is none.
  std::string transportTo(int peer) const;

 private:
  using Key = std::pair<int, int>;  // peer, channel
  std::unique_ptr<link::EdgeSetup> begin(int peer, int channel);
  void makeBell();

  control::Plane& plane_;
  const link::Registry& registry_;
  const std::vector<topology::PeerInfo>& infos_;
  std::chrono::milliseconds connectTimeout_;
  UniqueFd bellFd_;
  UniqueMap bellMemory_;
  std::optional<link::SharedSlots> sharedSlots_;  // in that memory
  std::once_flag earAsked_;
  std::optional<link::Ear> ear_;
  mutable std::mutex mutex_;  // guards what follows; held while a set-up is helped along
  std::map<Key, std::unique_ptr<link::EdgeSetup>> setups_;
  std::map<Key, std::unique_ptr<link::Connection>> connections_;
};

}  // namespace tutti::comm

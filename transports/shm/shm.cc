#include "transports/shm/shm.h"

#include <fmt/format.h>

#include <optional>

#include "base/costs.h"
#include "base/error.h"
#include "link/edge_memory.h"
#include "process/fd.h"
#include "transports/shm/fd_exchange.h"

namespace tutti::transports {
namespace {

using link::Connection;
using link::Doorbell;
using link::Edge;
using link::OobChannel;

constexpr uint32_t kMagic = 0x6d687374;  // "tshm"
constexpr uint32_t kVersion = 1;

class ShmConnection : public Connection {
 public:
  ShmConnection(const Edge& edge, UniqueMap region, UniqueMap peerBell)
      : region_(std::move(region)), peerBell_(std::move(peerBell)) {
    connectOver(*this, edge, region_.data(), reinterpret_cast<Doorbell*>(peerBell_.data()));
    memoryBytes = region_.bytes() / 2;
    transport = "shm";
  }

 private:
  UniqueMap region_, peerBell_;
};

// The lower rank makes the region and passes it; each rank passes its bell. All descriptors are closed once mapped.
class ShmSetup : public link::Setup {
 public:
  ShmSetup(const Edge& edge, OobChannel& oob)
      : edge_(edge), oob_(oob), regionBytes_(edgeMemoryBytes(edge)), maker_(edge.self < edge.peer) {
    if (maker_) {
      file_ = createMemoryFile("tutti-link", regionBytes_);
      region_ = mapShared(file_.get(), regionBytes_);
    }
    oob.requestStream(link::StreamKind::kUnix);
  }

  std::unique_ptr<Connection> advance() override {
    if (!exchange_ && !begin()) return nullptr;
    if (!exchange_->advance()) return nullptr;
    check(exchange_->greeting(), exchange_->fds().size());
    auto& fds = exchange_->fds();
    if (!maker_) region_ = mapSealed(fds.front().get(), regionBytes_, "the peer's memory file");
    UniqueMap bell;
    if (exchange_->greeting().bells != 0) bell = link::mapBell(fds.back().get());
    return std::make_unique<ShmConnection>(edge_, std::move(region_), std::move(bell));
  }

 private:
  bool begin() {
    auto stream = oob_.pollStream();
    if (!stream) return false;
    ShmGreeting greeting{kMagic, kVersion, edge_.slotBytes, edge_.depth, maker_ ? regionBytes_ : 0, 0, 0};
    std::vector<int> fds;
    if (maker_) fds.push_back(file_.get());
    if (edge_.selfBellFd >= 0) {
      fds.push_back(edge_.selfBellFd);
      greeting.bells = 1;
    }
    exchange_.emplace(std::move(stream->fd), greeting, std::move(fds));
    return true;
  }

  void check(const ShmGreeting& peer, size_t fds) const {
    if (peer.magic != kMagic || peer.version != kVersion)
      throw Error(ErrorCode::kRemote, fmt::format("the peer does not speak shm version {}", kVersion));
    if (peer.slotBytes != edge_.slotBytes || peer.depth != edge_.depth)
      throw Error(ErrorCode::kRemote, fmt::format("the peer has {} slots of {} bytes, this rank expects {} of {}",
                                                  peer.depth, peer.slotBytes, edge_.depth, edge_.slotBytes));
    const size_t region = maker_ ? 0 : 1;
    if (peer.regionBytes != region * regionBytes_ || peer.bells > 1 || fds != region + peer.bells)
      throw Error(ErrorCode::kRemote, "the peer announced other files than an edge needs");
  }

  Edge edge_;
  OobChannel& oob_;
  size_t regionBytes_;
  bool maker_;
  UniqueFd file_;
  UniqueMap region_;
  std::optional<FdExchange> exchange_;
};

// Its memory goes over a Unix socket.
std::string withoutSockets(const topology::PeerInfo& self, const topology::PeerInfo& peer) {
  if (self.unixSockets == peer.unixSockets) return "TUTTI_UNIX_SOCKETS=0";
  return fmt::format("TUTTI_UNIX_SOCKETS=0 in process {} alone", (self.unixSockets ? peer : self).pid);
}

class Shm : public link::Transport {
 public:
  std::string_view name() const noexcept override { return "shm"; }
  link::Reachability reach(const topology::PeerInfo& self, const topology::PeerInfo& peer) const override {
    if (self.hostId != peer.hostId) return {.reason = "different hosts"};
    if (!self.unixSockets || !peer.unixSockets) return {.reason = withoutSockets(self, peer)};
    return {true, costs::kShm.latencyUs, costs::kShm.bandwidthGBs, ""};
  }
  std::unique_ptr<link::Setup> open(const Edge& edge, OobChannel& oob) override {
    return std::make_unique<ShmSetup>(edge, oob);
  }
};

}  // namespace

std::unique_ptr<link::Transport> makeShm() { return std::make_unique<Shm>(); }

}  // namespace tutti::transports

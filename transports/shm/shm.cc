#include "transports/shm/shm.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <optional>

#include "base/costs.h"
#include "base/error.h"
#include "link/edge_memory.h"
#include "link/peer_window.h"
#include "process/fd.h"
#include "transports/shm/fd_exchange.h"

namespace tutti::transports {
namespace {

using link::Connection;
using link::Doorbell;
using link::Edge;
using link::OobChannel;

class ShmConnection : public Connection {
 public:
  ShmConnection(const Edge& edge, UniqueMap region, UniqueMap peerBell, link::Mark mark)
      : region_(std::move(region)), peerBell_(std::move(peerBell)), mark_(std::move(mark)) {
    connectOver(*this, edge, region_.data(), reinterpret_cast<Doorbell*>(peerBell_.data()));
    if (peerBell_.data() != nullptr) readShared(peerBell_.data() + link::kSharedSlotsAt);
    memoryBytes = region_.bytes() / 2;
    transport = "shm";
  }

 private:
  UniqueMap region_, peerBell_;
  link::Mark mark_;  // which the peer may read for as long as this end is there
};

// The lower rank makes the region and passes it; each rank passes its bell. All descriptors are closed once mapped.
class ShmSetup : public link::Setup {
 public:
  ShmSetup(const Edge& edge, OobChannel& oob, bool readsPeers)
      : edge_(edge),
        oob_(oob),
        regionBytes_(edgeMemoryBytes(edge)),
        maker_(edge.self < edge.peer),
        readsPeers_(readsPeers) {
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
    if (exchange_->greeting().bells != 0) bell = link::mapBell(fds[maker_ ? 0 : 1].get());
    auto made = std::make_unique<ShmConnection>(edge_, std::move(region_), std::move(bell), std::move(mark_));
    readFrom(exchange_->greeting(), *made);
    return made;
  }

 private:
  bool begin() {
    auto stream = oob_.pollStream();
    if (!stream) return false;
    ShmGreeting greeting{kShmMagic, kShmVersion, edge_.slotBytes, edge_.depth, maker_ ? regionBytes_ : 0, 0, 0, {}, 0};
    if (readsPeers_) greeting.lends = 1, greeting.mark = mark_.note();
    peerPid_ = pidAt(stream->fd.get());
    std::vector<int> fds;
    if (maker_) fds.push_back(file_.get());
    if (edge_.selfBellFd >= 0) {
      fds.push_back(edge_.selfBellFd);
      greeting.bells = 1;
    }
    if (const int window = readsPeers_ ? link::windowForPeers(whyNoWindow_) : -1; window >= 0) {
      fds.push_back(window);
      greeting.windows = 1;
    }
    exchange_.emplace(std::move(stream->fd), greeting, std::move(fds));
    return true;
  }

  // As this process sees it, also where the peer's container numbers it in another way.
  static int pidAt(int stream) noexcept {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    return ::getsockopt(stream, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : 0;
  }

  void readFrom(const ShmGreeting& peer, Connection& made) {
    const bool may = readsPeers_ && peer.lends != 0;
    std::string why = "TUTTI_SINGLE_COPY=0";
    auto memory = may ? link::PeerMemory::of(peerPid_, peer.mark, why) : nullptr;
    if (memory != nullptr)
      made.readFrom(std::move(memory));
    else
      made.remark = "; what comes from there is copied twice: " + why;
    if (!may) return;
    link::readWindow(made, peer.windows != 0 ? std::move(exchange_->fds().back()) : UniqueFd(), "the peer shares none");
    if (!whyNoWindow_.empty()) made.remark += "; this rank has none to share: " + whyNoWindow_;
  }

  void check(const ShmGreeting& peer, size_t fds) const {
    if (peer.magic != kShmMagic || peer.version != kShmVersion)
      throw Error(ErrorCode::kRemote, fmt::format("the peer does not speak shm version {}", kShmVersion));
    if (peer.slotBytes != edge_.slotBytes || peer.depth != edge_.depth)
      throw Error(ErrorCode::kRemote, fmt::format("the peer has {} slots of {} bytes, this rank expects {} of {}",
                                                  peer.depth, peer.slotBytes, edge_.depth, edge_.slotBytes));
    const size_t region = maker_ ? 0 : 1;
    if (peer.regionBytes != region * regionBytes_ || peer.bells > 1 || peer.windows > 1 ||
        fds != region + peer.bells + peer.windows)
      throw Error(ErrorCode::kRemote, "the peer announced other files than an edge needs");
  }

  Edge edge_;
  OobChannel& oob_;
  size_t regionBytes_;
  bool maker_, readsPeers_;
  int peerPid_ = 0;
  link::Mark mark_;
  std::string whyNoWindow_;
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
  explicit Shm(bool readsPeers) : readsPeers_(readsPeers) {}
  std::string_view name() const noexcept override { return "shm"; }
  link::Reachability reach(const topology::PeerInfo& self, const topology::PeerInfo& peer) const override {
    if (self.hostId != peer.hostId) return {.reason = "different hosts"};
    if (!self.unixSockets || !peer.unixSockets) return {.reason = withoutSockets(self, peer)};
    return {true, costs::kShm.latencyUs, costs::kShm.bandwidthGBs, ""};
  }
  std::unique_ptr<link::Setup> open(const Edge& edge, OobChannel& oob) override {
    return std::make_unique<ShmSetup>(edge, oob, readsPeers_);
  }

 private:
  bool readsPeers_;
};

}  // namespace

std::unique_ptr<link::Transport> makeShm(bool readsPeers) { return std::make_unique<Shm>(readsPeers); }

}  // namespace tutti::transports

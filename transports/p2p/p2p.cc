#include "transports/p2p/p2p.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "base/bytes.h"
#include "base/costs.h"
#include "base/error.h"
#include "base/random.h"
#include "link/edge_memory.h"
#include "link/peer_window.h"
#include "process/fd.h"
#include "process/process_object.h"

namespace tutti::transports {
namespace {

using link::Connection;
using link::Doorbell;
using link::Edge;
using link::OobChannel;

// What the two ends own together; it goes with the last of them. Bells are mapped a second time rather than pointed
// to, so that an end can ring a peer whose own memory is already gone.
struct Block {
  UniqueMap memory;
  uint32_t slotBytes = 0, depth = 0;
  std::array<UniqueMap, 2> bellPages;
  std::array<Doorbell*, 2> bells{};  // 0: the lower rank's
  link::Mark mark;
  std::atomic<bool> attached{false};

  void setBell(int side, const Edge& edge) {
    if (edge.selfBellFd < 0) return;  // that one wakes by itself
    bellPages[side] = link::mapBell(edge.selfBellFd);
    bells[side] = reinterpret_cast<Doorbell*>(bellPages[side].data());
  }
};

// Blocks that wait for their second owner. What crosses the control plane is a ticket and never a pointer: bytes from
// outside must not be dereferenced, and a block whose maker has given up is simply not found. Tickets are drawn, so
// that only who was told one can name it. The process itself is what the two ranks share, so this is the one table that
// hangs on the process.
class InProcessRegistry {
 public:
  static InProcessRegistry& ofProcess() { return ofThisProcess<InProcessRegistry>(); }
  uint64_t leave(std::shared_ptr<Block> block) {
    const uint64_t ticket = randomNumber();
    const std::lock_guard lock(mutex_);
    blocks_.emplace(ticket, std::move(block));
    return ticket;
  }
  std::shared_ptr<Block> take(uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(ticket);
    if (found == blocks_.end()) return nullptr;
    auto block = std::move(found->second);
    blocks_.erase(found);
    return block;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::unordered_map<uint64_t, std::shared_ptr<Block>> blocks_;
};

// A block left in that table, for as long as its maker waits for the taker.
class RegistryEntry {
 public:
  explicit RegistryEntry(std::shared_ptr<Block> block)
      : ticket_(InProcessRegistry::ofProcess().leave(std::move(block))) {}
  RegistryEntry(const RegistryEntry&) = delete;
  RegistryEntry& operator=(const RegistryEntry&) = delete;
  ~RegistryEntry() { InProcessRegistry::ofProcess().take(ticket_); }
  uint64_t ticket() const noexcept { return ticket_; }

 private:
  uint64_t ticket_;
};

std::shared_ptr<Block> makeBlock(const Edge& edge) {
  auto block = std::make_shared<Block>();
  block->memory = link::mapPrivate(edgeMemoryBytes(edge));
  block->slotBytes = edge.slotBytes;
  block->depth = edge.depth;
  block->setBell(0, edge);
  return block;
}

class P2pConnection : public Connection {
 public:
  P2pConnection(const Edge& edge, std::shared_ptr<Block> block, bool readsPeers) : block_(std::move(block)) {
    const int peerSide = edge.self < edge.peer ? 1 : 0;
    connectOver(*this, edge, block_->memory.data(), block_->bells[peerSide]);
    const UniqueMap& peerPages = block_->bellPages[peerSide];
    if (peerPages.data() != nullptr) readShared(peerPages.data() + link::kSharedSlotsAt);
    memoryBytes = block_->memory.bytes() / 2;
    transport = "p2p";
    readSelf(readsPeers);
  }

 private:
  // By a system call, or where it is mapped a second time, though the peer's memory is here: it may be gone before its
  // time, and must not take this rank along.
  void readSelf(bool readsPeers) {
    std::string why = "TUTTI_SINGLE_COPY=0";
    auto own = readsPeers ? link::PeerMemory::of(::getpid(), block_->mark.note(), why) : nullptr;
    if (own != nullptr)
      readFrom(std::move(own));
    else
      remark = "; what comes from there is copied twice: " + why;
    if (!readsPeers) return;
    const int window = link::windowForPeers(why);
    UniqueFd file(window >= 0 ? ::fcntl(window, F_DUPFD_CLOEXEC, 0) : -1);
    if (window >= 0 && !file) why = systemError("its file cannot be opened once more", errno).what();
    link::readWindow(*this, std::move(file), why);
  }

  std::shared_ptr<Block> block_;
};

class Maker : public link::Setup {
 public:
  Maker(const Edge& edge, OobChannel& oob, bool readsPeers)
      : edge_(edge), readsPeers_(readsPeers), block_(makeBlock(edge)), entry_(block_) {
    oob.put(Writer().value(entry_.ticket()).take());
  }

  std::unique_ptr<Connection> advance() override {
    // Acquire: pairs with Taker::advance; the peer's bell has been set.
    if (!block_->attached.load(std::memory_order_acquire)) return nullptr;
    return std::make_unique<P2pConnection>(edge_, block_, readsPeers_);
  }

 private:
  Edge edge_;
  bool readsPeers_;
  std::shared_ptr<Block> block_;
  RegistryEntry entry_;
};

class Taker : public link::Setup {
 public:
  Taker(const Edge& edge, OobChannel& oob, bool readsPeers) : edge_(edge), oob_(oob), readsPeers_(readsPeers) {}

  std::unique_ptr<Connection> advance() override {
    const auto blob = oob_.poll();
    if (!blob) return nullptr;
    auto block = InProcessRegistry::ofProcess().take(Reader(*blob).value<uint64_t>());
    if (!block) throw Error(ErrorCode::kRemote, "the memory that the peer announced is not there: it has given up");
    if (block->slotBytes != edge_.slotBytes || block->depth != edge_.depth)
      throw Error(ErrorCode::kRemote, fmt::format("the peer made {} slots of {} bytes, this rank expects {} of {}",
                                                  block->depth, block->slotBytes, edge_.depth, edge_.slotBytes));
    block->setBell(1, edge_);
    // Release: pairs with Maker::advance.
    block->attached.store(true, std::memory_order_release);
    return std::make_unique<P2pConnection>(edge_, std::move(block), readsPeers_);
  }

 private:
  Edge edge_;
  OobChannel& oob_;
  bool readsPeers_;
};

class P2p : public link::Transport {
 public:
  explicit P2p(bool readsPeers) : readsPeers_(readsPeers) {}
  std::string_view name() const noexcept override { return "p2p"; }
  link::Reachability reach(const topology::PeerInfo& self, const topology::PeerInfo& peer) const override {
    if (self.processToken != peer.processToken || self.hostId != peer.hostId)
      return {.reason = self.hostId != peer.hostId ? "different hosts" : "different processes"};
    return {true, costs::kP2p.latencyUs, costs::kP2p.bandwidthGBs, ""};
  }
  std::unique_ptr<link::Setup> open(const Edge& edge, OobChannel& oob) override {
    if (edge.self < edge.peer) return std::make_unique<Maker>(edge, oob, readsPeers_);
    return std::make_unique<Taker>(edge, oob, readsPeers_);
  }

 private:
  bool readsPeers_;
};

}  // namespace

std::unique_ptr<link::Transport> makeP2p(bool readsPeers) { return std::make_unique<P2p>(readsPeers); }

}  // namespace tutti::transports

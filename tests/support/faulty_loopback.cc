#include "support/faulty_loopback.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"
#include "link/edge_memory.h"

namespace tutti::test {

using link::Connection;
using link::Edge;
using link::Progress;

struct Parcel {
  link::Fingerprint fingerprint;
  std::vector<std::byte> payload;
};

struct FaultyWire {
  std::mutex mutex;
  std::deque<Parcel> parcels;
};

// Each end takes its half of the oldest wire that its counterpart has made, or makes one and leaves the half.
std::shared_ptr<FaultyWire> FaultyNetwork::wire(const Edge& edge, bool fromSelf) {
  const std::lock_guard lock(mutex_);
  const auto key =
      fromSelf ? std::tuple(edge.self, edge.peer, edge.channel) : std::tuple(edge.peer, edge.self, edge.channel);
  auto& [forSender, forReceiver] = wires_[key];
  auto& mine = fromSelf ? forSender : forReceiver;
  auto& others = fromSelf ? forReceiver : forSender;
  if (mine.empty()) {
    mine.push_back(std::make_shared<FaultyWire>());
    others.push_back(mine.back());
  }
  auto wire = std::move(mine.front());
  mine.pop_front();
  return wire;
}

namespace {

class FaultyDriver final : public link::Driver {
 public:
  FaultyDriver(std::shared_ptr<FaultyNetwork> network, const FaultPlan& plan, const Edge& edge)
      : network_(std::move(network)),
        plan_(plan),
        edge_(edge),
        random_(plan.seed * 1000003 + static_cast<uint64_t>(edge.self)),
        out_(network_->wire(edge, true)),
        in_(network_->wire(edge, false)) {}

  void serve(const Connection& connection) noexcept {
    send_ = connection.send.fifo;
    recv_ = connection.recv.fifo;
  }

  Progress progress() noexcept override {
    if (network_->isCut()) return Progress::kFailed;
    if (network_->stopped()) return Progress::kIdle;
    const bool sent = !late() && sendOne();
    const bool received = !late() && receivePiece();
    if (edge_.selfBell != nullptr && late()) link::wake(*edge_.selfBell);  // for nothing
    return sent || received ? Progress::kAdvanced : Progress::kIdle;
  }
  bool sending() const noexcept override { return posted(); }
  Interest wanted() noexcept override { return {-1, 0}; }
  std::string error() const override {
    return fmt::format("the faulty link to rank {} ({}) was cut by the test", edge_.peer, edge_.peerInfo.hostName);
  }

 private:
  bool late() noexcept { return random_() % 100 < plan_.latePercent; }
  link::SlotHeader& outHeader() const noexcept { return send_.headers[sent_ & (send_.depth - 1)]; }
  bool posted() const noexcept { return outHeader().sequence.load(std::memory_order_acquire) == sent_ + 1; }
  bool struck() const noexcept { return plan_.onlyRank < 0 || plan_.onlyRank == edge_.self; }

  bool sendOne() noexcept {
    if (!posted()) return false;
    const link::SlotHeader& line = outHeader();
    const std::byte* from = line.bytes <= link::kInlineBytes
                                ? line.inlined
                                : send_.slots + (sent_ & (send_.depth - 1)) * size_t{send_.slotBytes};
    Parcel parcel{line.fingerprint, {from, from + line.bytes}};
    if (plan_.failAt == FaultAt::kData && struck() && line.bytes > link::kInlineBytes)
      parcel.payload[line.bytes / 2] ^= std::byte{1};
    {
      const std::lock_guard lock(out_->mutex);
      out_->parcels.push_back(std::move(parcel));
    }
    send_.released->value.store(++sent_, std::memory_order_release);
    return true;
  }

  bool receivePiece() noexcept {
    const std::lock_guard lock(in_->mutex);
    const bool room = arrived_ - recv_.released->value.load(std::memory_order_acquire) < recv_.depth;
    if (in_->parcels.empty() || !room) return false;
    const Parcel& parcel = in_->parcels.front();
    link::SlotHeader& line = recv_.headers[arrived_ & (recv_.depth - 1)];
    const auto bytes = static_cast<uint32_t>(parcel.payload.size());
    std::byte* to = bytes <= link::kInlineBytes
                        ? line.inlined
                        : recv_.slots + (arrived_ & (recv_.depth - 1)) * size_t{recv_.slotBytes};
    const size_t step = std::min<size_t>(bytes - moved_, 1 + random_() % plan_.pieceBytes);
    if (step != 0) std::memcpy(to + moved_, parcel.payload.data() + moved_, step);
    moved_ += step;
    if (moved_ < bytes) return true;
    line.fingerprint = parcel.fingerprint;
    line.bytes = bytes;
    line.sequence.store(++arrived_, std::memory_order_release);
    moved_ = 0;
    in_->parcels.pop_front();
    return true;
  }

  std::shared_ptr<FaultyNetwork> network_;
  FaultPlan plan_;
  Edge edge_;
  std::mt19937_64 random_;
  std::shared_ptr<FaultyWire> out_, in_;
  link::Fifo send_, recv_;
  uint64_t sent_ = 0, arrived_ = 0;
  size_t moved_ = 0;
};

class FaultyConnection : public Connection {
 public:
  FaultyConnection(const Edge& edge, std::unique_ptr<FaultyDriver> driver)
      : memory_(link::mapPrivate(edgeMemoryBytes(driven(edge)))), driver_(std::move(driver)) {
    connectOver(*this, driven(edge), memory_.data(), nullptr);
    driver_->serve(*this);
    send.driver = recv.driver = driver_.get();
    memoryBytes = memory_.bytes();
    transport = "faulty";
  }

 private:
  UniqueMap memory_;
  std::unique_ptr<FaultyDriver> driver_;
};

class FaultySetup : public link::Setup {
 public:
  FaultySetup(const Edge& edge, const FaultPlan& plan, std::unique_ptr<FaultyDriver> driver)
      : edge_(edge), plan_(plan), driver_(std::move(driver)) {}
  std::unique_ptr<Connection> advance() override {
    const bool struck = plan_.onlyRank < 0 || plan_.onlyRank == edge_.self;
    if (struck && plan_.failAt == FaultAt::kConnect) throw Error(ErrorCode::kSystem, "fault at connect");
    if (struck && plan_.failAt == FaultAt::kHang) return nullptr;
    return std::make_unique<FaultyConnection>(edge_, std::move(driver_));
  }

 private:
  Edge edge_;
  FaultPlan plan_;
  std::unique_ptr<FaultyDriver> driver_;
};

class Faulty : public link::Transport {
 public:
  Faulty(std::shared_ptr<FaultyNetwork> network, const FaultPlan& plan) : network_(std::move(network)), plan_(plan) {}
  std::string_view name() const noexcept override { return "faulty"; }
  link::Reachability reach(const topology::PeerInfo& self, const topology::PeerInfo& peer) const override {
    if (self.processToken != peer.processToken) return {.reason = "different processes"};
    return {true, plan_.latencyUs, plan_.bandwidthGBs, ""};
  }
  std::unique_ptr<link::Setup> open(const Edge& edge, link::OobChannel&) override {
    if (plan_.failAt == FaultAt::kOpen && (plan_.onlyRank < 0 || plan_.onlyRank == edge.self))
      throw Error(ErrorCode::kSystem, "fault at open");
    return std::make_unique<FaultySetup>(edge, plan_, std::make_unique<FaultyDriver>(network_, plan_, edge));
  }

 private:
  std::shared_ptr<FaultyNetwork> network_;
  FaultPlan plan_;
};

}  // namespace

std::unique_ptr<link::Transport> makeFaulty(std::shared_ptr<FaultyNetwork> network, const FaultPlan& plan) {
  return std::make_unique<Faulty>(std::move(network), plan);
}

}  // namespace tutti::test

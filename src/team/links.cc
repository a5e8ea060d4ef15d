#include "team/links.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <set>

#include "base/error.h"
#include "link/edge_memory.h"
#include "process/log.h"
#include "team/mail_key.h"

namespace tutti::comm {
namespace {

// One edge's line to its peer, through mailboxes and streams of the control plane.
class PlaneMeeting final : public link::OobChannel {
 public:
  PlaneMeeting(control::Plane& plane, int peer, int channel)
      : plane_(plane), peer_(peer), key_(MailKey::link(static_cast<uint16_t>(channel))) {}

  void put(std::span<const std::byte> blob) override { plane_.post(peer_, key_.mailbox(), blob); }
  std::optional<Bytes> poll() override { return plane_.poll(peer_, key_.mailbox()); }
  void requestStream(link::StreamKind kind) override {
    plane_.requestStream(peer_, key_.stream(++streams_),
                         kind == link::StreamKind::kUnix ? control::StreamKind::kUnix : control::StreamKind::kTcp);
  }
  std::optional<SecureSocket> pollStream() override { return plane_.pollStream(peer_, key_.stream(streams_)); }

 private:
  control::Plane& plane_;
  int peer_;
  MailKey key_;
  uint32_t streams_ = 0;
};

// A rank's link to itself: one FIFO, both of its ends here.
class SelfConnection final : public link::Connection {
 public:
  SelfConnection(int self, uint32_t slotBytes, uint32_t depth) : memory_(allocate(slotBytes, depth)) {
    send.fifo = recv.fifo = link::Fifo::over(memory_.get(), slotBytes, depth);
    send.peer = recv.peer = self;
    memoryBytes = link::Fifo::bytesFor(slotBytes, depth);
    transport = "self";
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(128)); }
  };
  static std::unique_ptr<std::byte[], Free> allocate(uint32_t slotBytes, uint32_t depth) {
    const size_t bytes = link::Fifo::bytesFor(slotBytes, depth);
    return std::unique_ptr<std::byte[], Free>(new (std::align_val_t(128)) std::byte[bytes]());
  }
  std::unique_ptr<std::byte[], Free> memory_;
};

}  // namespace

Links::Links(control::Plane& plane, const link::Registry& registry, const std::vector<topology::PeerInfo>& infos,
             std::chrono::milliseconds connectTimeout)
    : plane_(plane), registry_(registry), infos_(infos), connectTimeout_(connectTimeout) {
  makeBell();
  // A set-up goes on when mail or a stream has come, and whoever waits for it may sleep.
  plane_.whenNews([this] { link::ring(&bell()); });
}

Links::~Links() { plane_.whenNews({}); }

// Without a file of its memory nobody else can ring it, and all that is lost is that: links that need files themselves
// say why they cannot be had, the others do without.
void Links::makeBell() {
  try {
    bellFd_ = createMemoryFile("tutti-bell", link::kBellFileBytes);
    bellMemory_ = mapShared(bellFd_.get(), link::kBellFileBytes);
    const auto& self = infos_[static_cast<size_t>(plane_.rank())].hostId;
    const auto here = std::ranges::count(infos_, self, &topology::PeerInfo::hostId);
    sharedSlots_.emplace(bellMemory_.data() + link::kSharedSlotsAt, static_cast<size_t>(here));
  } catch (const Error& error) {
    log::info("{}; a rank that sleeps wakes every millisecond to look at its memory", error.what());
    bellFd_ = {};
    bellMemory_ = link::mapPrivate(link::kBellFileBytes);
  }
}

link::Ear* Links::ear() noexcept {
  try {
    std::call_once(earAsked_, [this] {
      try {
        ear_.emplace(bell());
      } catch (const Error& error) {
        log::info("{}; a rank that sleeps on sockets wakes every millisecond to look at its memory", error.what());
      }
    });
  } catch (const std::exception&) {  // no memory for that text, or no threads to be once among
  }
  return ear_ ? &*ear_ : nullptr;
}

std::unique_ptr<link::EdgeSetup> Links::begin(int peer, int channel) {
  link::Edge edge;
  edge.self = plane_.rank();
  edge.peer = peer;
  edge.channel = channel;
  const bool isPair = plane_.size() == 2;
  edge.dividesSlots = isPair;
  if (isPair && (channel == 0 || channel == kMessageChannel)) {
    edge.mappedDepth = slots::kDepthOfPair;
    edge.streamDepth = slots::kStreamDepthOfPair;
    edge.lines = slots::kLinesOfPair;
  }
  edge.selfInfo = infos_[static_cast<size_t>(edge.self)];
  edge.peerInfo = infos_[static_cast<size_t>(peer)];
  edge.selfBell = &bell();
  edge.selfBellFd = bellFd_.get();
  return std::make_unique<link::EdgeSetup>(registry_, edge, std::make_unique<PlaneMeeting>(plane_, peer, channel),
                                           connectTimeout_);
}

link::Connection* Links::find(int peer, int channel) {
  std::lock_guard lock(mutex_);
  const Key key{peer, channel};
  if (const auto found = connections_.find(key); found != connections_.end()) return found->second.get();
  if (peer == plane_.rank()) {
    const link::Edge defaults;
    auto made = std::make_unique<SelfConnection>(peer, defaults.slotBytes, defaults.depth);
    return connections_.emplace(key, std::move(made)).first->second.get();
  }
  auto& setup = setups_[key];
  if (!setup) setup = begin(peer, channel);
  auto connection = setup->advance();
  if (!connection) return nullptr;
  setups_.erase(key);
  return connections_.emplace(key, std::move(connection)).first->second.get();
}

size_t Links::memoryBytes() const {
  std::lock_guard lock(mutex_);
  size_t bytes = bellMemory_.bytes();
  for (const auto& [key, connection] : connections_) bytes += connection->memoryBytes;
  return bytes;
}

size_t Links::connectedPeers() const {
  std::lock_guard lock(mutex_);
  std::set<int> peers;
  for (const auto& [key, connection] : connections_) peers.insert(key.first);
  peers.erase(plane_.rank());
  return peers.size();
}

std::string Links::transportNames() const {
  std::lock_guard lock(mutex_);
  std::set<std::string> names;
  for (const auto& [key, connection] : connections_)
    if (key.first != plane_.rank()) names.insert(connection->transport);
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

std::string Links::transportTo(int peer) const {
  std::lock_guard lock(mutex_);
  const auto first = connections_.lower_bound({peer, 0});
  return first == connections_.end() || first->first.first != peer ? "" : first->second->transport;
}

}  // namespace tutti::comm

#include "transports/verbs/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace tutti::verbs {

struct Connection::Greeting {
  uint32_t magic = 0x62726576, version = 2;  // "verb"
  uint32_t slotBytes = 0, depth = 0, paths = 0, unused = 0;
  std::array<QueueAddress, kMostPaths> addresses{};
};

namespace {

constexpr unsigned char kReady = 1;

// Each port of a link may have several queue pairs: those of one port lie side by side.
std::vector<Port> portsFor(const tuttiTransportEdge& edge, const LinkSettings& settings) {
  const auto pairs = static_cast<size_t>(settings.pairsPerPort);
  const std::vector<Port> all = portsHere();
  const auto chosen = portsOf(all, settings.ports, edge.self.numaNode, static_cast<unsigned>(edge.channel),
                              std::max<size_t>(1, kMostPaths / pairs));
  if (chosen.empty()) throw std::runtime_error(whyNone(all, settings.ports));
  std::vector<Port> ports;
  for (const Port* port : chosen)
    for (size_t i = 0; i < pairs && ports.size() < kMostPaths; ++i) ports.push_back(*port);
  return ports;
}

void checkWay(const QueueAddress& own, const QueueAddress& peer, const std::string& port) {
  const auto layer = [](const QueueAddress& end) { return end.isEthernet ? "Ethernet (RoCE)" : "InfiniBand"; };
  if (own.isEthernet != peer.isEthernet)
    throw std::runtime_error(fmt::format("{} is {}, the peer's port is {}: TUTTI_IB_HCA can choose ports of one kind",
                                         port, layer(own), layer(peer)));
  if (peer.mtu < 1 || peer.mtu > 5) throw std::runtime_error("the peer announced a port that there is none of");
}

}  // namespace

Connection::Connection(const tuttiTransportEdge& edge, const tuttiTransportLine& line, const LinkSettings& settings,
                       const tuttiTransportHost& host)
    : edge_(edge), peerHost_(edge.peer.hostName), mostMemory_(settings.mostMemory), line_(line), host_(host) {
  const int notes = StripedLink::mostNotes(edge.send.depth), writes = StripedLink::mostWrites(edge.send.depth);
  for (const Port& port : portsFor(edge, settings))
    queues_.push_back(std::make_unique<DeviceQueue>(port, settings.behaviour, edge, notes, writes));
  Greeting greeting;
  greeting.slotBytes = edge.send.slotBytes;
  greeting.depth = edge.send.depth;
  greeting.paths = static_cast<uint32_t>(queues_.size());
  for (size_t i = 0; i < queues_.size(); ++i) greeting.addresses[i] = queues_[i]->address();
  line_.put(line_.line, &greeting, sizeof greeting);
  link_ =
      std::make_unique<StripedLink>(edge.send, edge.recv, edge.memory, edge.self.rank < edge.peer.rank,
                                    [this](const std::string& text) { host_.log(0, (name() + ": " + text).c_str()); });
  if (edge.gpuSlots.begin != nullptr) link_->slotsIn(edge.gpuSlots);
}

Connection::~Connection() {
  tellSlots();
  if (sleepOn_ >= 0) ::close(sleepOn_);
  if (awake_ >= 0) ::close(awake_);
}

Progress Connection::connect() noexcept try {
  if (!queues_.empty() && !heardGreeting()) return Progress::kIdle;
  if (!isConnected_ && !heardReady()) return Progress::kIdle;
  isConnected_ = true;
  return Progress::kAdvanced;
} catch (const std::exception& error) {
  try {
    why_ = error.what();
  } catch (const std::exception&) {
  }
  return Progress::kFailed;
}

bool Connection::heardGreeting() {
  Greeting peers;
  const int64_t bytes = line_.poll(line_.line, &peers, sizeof peers);
  if (bytes < 0) return false;
  const Greeting own;
  if (bytes != sizeof peers || peers.magic != own.magic || peers.version != own.version)
    throw std::runtime_error("the peer does not speak this version of verbs links");
  if (peers.slotBytes != edge_.send.slotBytes || peers.depth != edge_.send.depth || peers.paths == 0 ||
      peers.paths > kMostPaths)
    throw std::runtime_error("the peer announced a link of another form");
  if ((peers.addresses[0].slots != 0) != (edge_.gpuSlots.begin != nullptr))
    throw std::runtime_error("slots lie in a GPU at one end alone");
  join(peers);
  line_.put(line_.line, &kReady, sizeof kReady);
  return true;
}

// The first paths of one end meet the first ones of the other; who has more leaves the rest.
void Connection::join(const Greeting& peers) {
  sleepOn_ = ::epoll_create1(EPOLL_CLOEXEC);
  awake_ = ::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  if (sleepOn_ < 0 || awake_ < 0) refused("a descriptor to sleep on cannot be had", errno);
  queues_.resize(std::min<size_t>(queues_.size(), peers.paths));
  for (size_t i = 0; i < queues_.size(); ++i) {
    checkWay(queues_[i]->address(), peers.addresses[i], queues_[i]->name());
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(sleepOn_, EPOLL_CTL_ADD, queues_[i]->pollFd(), &event) != 0)
      refused("a channel for completions cannot be slept on", errno);
    link_->addPath(std::move(queues_[i]), peers.addresses[i]);
  }
  queues_.clear();
  if (!link_->begin()) throw std::runtime_error(link_->error());
}

bool Connection::heardReady() {
  unsigned char said = 0;
  const int64_t bytes = line_.poll(line_.line, &said, sizeof said);
  if (bytes >= 0 && (bytes != 1 || said != kReady))
    throw std::runtime_error("the peer said something else than that it is ready");
  return bytes >= 0;
}

bool Connection::hold(const tuttiTransportMemory& memory) noexcept try {
  if (mostMemory_ == 0) return false;
  std::string why;
  const bool held = link_->hold(memory, mostMemory_, why);
  if (!why.empty()) host_.log(1, (name() + ": " + why).c_str());
  return held;
} catch (const std::exception&) {  // no memory to say it
  return false;
}

void Connection::tellSlots() const noexcept try {
  if (link_ == nullptr || link_->sentInPlace() == 0) return;
  host_.log(
      2, fmt::format("{}: {} of {} slots were sent from registered memory", name(), link_->sentInPlace(), link_->sent())
             .c_str());
} catch (const std::exception&) {
}

int Connection::interest(short& events) noexcept {
  events = POLLIN;
  return link_->arm() ? sleepOn_ : awake_;
}

std::string Connection::name() const {
  return fmt::format("the RDMA link to rank {} (host {}, pid {})", edge_.peer.rank, peerHost_, edge_.peer.pid);
}

std::string Connection::error() const {
  return why_.empty() ? fmt::format("{} failed: {}", name(), link_->error()) : why_;
}

}  // namespace tutti::verbs

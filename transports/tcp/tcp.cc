#include "transports/tcp/tcp.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/costs.h"
#include "base/error.h"
#include "link/edge_memory.h"
#include "net/congestion.h"
#include "process/fd.h"
#include "process/link_sockets.h"
#include "process/log.h"
#include "transports/tcp/address.h"
#include "transports/tcp/receiver.h"
#include "transports/tcp/sealed_sender.h"
#include "transports/tcp/sender.h"

namespace tutti::transports {
namespace {

using link::Connection;
using link::Edge;
using link::OobChannel;
using link::Progress;

std::string describe(const StreamResult& failure, const std::string& peer) {
  const auto says = [&](const std::string& what) { return fmt::format("the TCP link to {} {}", peer, what); };
  switch (failure.fault) {
    case StreamFault::kNone:
      break;
    case StreamFault::kSystem:
      return says(fmt::format("failed: {}", errnoText(failure.errorNumber)));
    case StreamFault::kClosed:
      return says("was closed by the peer");
    case StreamFault::kTorn:
      return says("ended in the middle of a slot: the peer is gone");
    case StreamFault::kNoFrame:
      return says(fmt::format("carries something else than frames ({:#x})", failure.seen));
    case StreamFault::kTooLong:
      return says(fmt::format("announced {} bytes for a slot of {}", failure.seen, failure.right));
    case StreamFault::kOutOfOrder:
      return says(fmt::format("delivered slot {} where {} was due", failure.seen, failure.right));
    case StreamFault::kForged:
      return says("carried a record that fails its integrity check: bytes were changed, repeated or lost on the way");
    case StreamFault::kUnsealed:
      return says("has lost the key that seals it: nothing more is sent");
  }
  return says("works");
}

// Drives one stream, in the clear or sealed: which of the two costs nothing while it runs.
template <class Sender, class Receiver>
class TcpDriver final : public link::Driver {
 public:
  TcpDriver(UniqueFd socket, Sender sender, Receiver receiver, std::string peer)
      : socket_(std::move(socket)), peer_(std::move(peer)), sender_(std::move(sender)), receiver_(std::move(receiver)) {
    noteLinkSocket(socket_.get());
  }
  ~TcpDriver() override;

  Progress progress() noexcept override;
  Progress send() noexcept override;
  bool reachesBuffers() const noexcept override { return true; }
  bool asksTheSystem() const noexcept override { return true; }
  void land(const link::Landing& landing) noexcept override { receiver_.land(landing); }
  void stopLanding() noexcept override { receiver_.stopLanding(); }
  bool sending() const noexcept override { return sender_.pending(); }
  // Nothing moves after a failure, and a poll would return at once for it, again and again.
  Interest wanted() noexcept override {
    if (failure_.fault != StreamFault::kNone) return {socket_.get(), 0};
    return {socket_.get(), static_cast<short>((receiver_.wantsMore() ? POLLIN : 0) | (sending() ? POLLOUT : 0))};
  }
  std::string error() const override { return describe(failure_, peer_); }

 private:
  Progress receive(const StreamResult& out) noexcept;

  UniqueFd socket_;
  std::string peer_;
  Sender sender_;
  Receiver receiver_;
  StreamResult failure_;
};

template <class Sender, class Receiver>
Progress TcpDriver<Sender, Receiver>::progress() noexcept {
  if (failure_.fault != StreamFault::kNone) return Progress::kFailed;
  return receive(sender_.pump());
}

template <class Sender, class Receiver>
Progress TcpDriver<Sender, Receiver>::send() noexcept {
  if (failure_.fault != StreamFault::kNone) return Progress::kFailed;
  const StreamResult out = sender_.pump();
  if (out.fault != StreamFault::kNone) return receive(out);
  return out.moved ? Progress::kAdvanced : Progress::kIdle;
}

// After a turn of the sender.
template <class Sender, class Receiver>
Progress TcpDriver<Sender, Receiver>::receive(const StreamResult& out) noexcept {
  // Also after a failure to send: what the peer sent before it went is still to be delivered, once at least.
  StreamResult in = receiver_.pump();
  if (out.fault != StreamFault::kNone && !in.moved) failure_ = out;
  // Whoever has just been served is not told in the same breath that the peer has gone since.
  if (in.fault != StreamFault::kNone && !(in.fault == StreamFault::kClosed && out.moved)) failure_ = in;
  if (failure_.fault != StreamFault::kNone) return Progress::kFailed;
  return in.moved || out.moved ? Progress::kAdvanced : Progress::kIdle;
}

// Closing a socket that holds unread bytes resets the connection, and a reset takes from the peer what it has not read
// yet. So this end says that it is done, and takes what is there, without waiting for more.
template <class Sender, class Receiver>
TcpDriver<Sender, Receiver>::~TcpDriver() {
  if (failure_.fault == StreamFault::kNone) sender_.pump();
  ::shutdown(socket_.get(), SHUT_WR);
  constexpr int kMaxReads = 64;
  char waste[4096];
  int reads = 0;
  while (reads<kMaxReads&& ::recv(socket_.get(), waste, sizeof waste, MSG_DONTWAIT)> 0) ++reads;
  forgetLinkSocket(socket_.get());
}

using ClearDriver = TcpDriver<Sender, Receiver<ClearFraming>>;
using SealedDriver = TcpDriver<SealedSender, Receiver<SealedFraming>>;

Edge streamed(Edge edge) noexcept {
  edge.depth = std::max(edge.depth, edge.streamDepth);
  return link::driven(edge);
}

class TcpConnection : public Connection {
 public:
  TcpConnection(const Edge& edge, SecureSocket stream) : memory_(link::mapPrivate(edgeMemoryBytes(streamed(edge)))) {
    connectOver(*this, streamed(edge), memory_.data(), nullptr);
    const std::string peer =
        fmt::format("rank {} ({}, {})", edge.peer, edge.peerInfo.hostName, peerAddress(stream.fd.get()));
    memoryBytes = memory_.bytes();
    drive(std::move(stream), peer);
    send.driver = recv.driver = driver_.get();
    transport = "tcp";
  }

 private:
  void drive(SecureSocket stream, const std::string& peer) {
    const int socket = stream.fd.get();
    if (!stream.keys) {
      driver_ = std::make_unique<ClearDriver>(std::move(stream.fd), Sender(socket, send.fifo),
                                              Receiver<ClearFraming>(socket, recv.fifo), peer);
      memoryBytes += sizeof(ClearDriver);
      return;
    }
    SealedSender sender(socket, send.fifo, *stream.keys);
    memoryBytes += sizeof(SealedDriver) + sender.bufferBytes();
    driver_ =
        std::make_unique<SealedDriver>(std::move(stream.fd), std::move(sender),
                                       Receiver<SealedFraming>(socket, recv.fifo, SealedFraming(*stream.keys)), peer);
  }

  UniqueMap memory_;
  std::unique_ptr<link::Driver> driver_;
};

class TcpSetup : public link::Setup {
 public:
  TcpSetup(const Edge& edge, OobChannel& oob, std::string congestion)
      : edge_(edge), oob_(oob), congestion_(std::move(congestion)) {
    oob.requestStream(link::StreamKind::kTcp);
  }
  std::unique_ptr<Connection> advance() override {
    auto stream = oob_.pollStream();
    if (!stream) return nullptr;
    const int on = 1;
    if (::setsockopt(stream->fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
      throw systemError("cannot switch off delays on a TCP stream (TCP_NODELAY)", errno);
    setCongestion(stream->fd.get(), congestion_);
    log::info("the congestion control of the TCP link to rank {} is {}", edge_.peer, congestionOf(stream->fd.get()));
    return std::make_unique<TcpConnection>(edge_, std::move(*stream));
  }

 private:
  Edge edge_;
  OobChannel& oob_;
  std::string congestion_;
};

class Tcp : public link::Transport {
 public:
  explicit Tcp(std::string congestion) : congestion_(std::move(congestion)) {}
  std::string_view name() const noexcept override { return "tcp"; }
  link::Reachability reach(const topology::PeerInfo& self, const topology::PeerInfo& peer) const override {
    const auto& known = self.hostId == peer.hostId ? costs::kTcpLoopback : costs::kTcpNetwork;
    return {true, known.latencyUs, known.bandwidthGBs, ""};
  }
  std::unique_ptr<link::Setup> open(const Edge& edge, OobChannel& oob) override {
    return std::make_unique<TcpSetup>(edge, oob, congestion_);
  }

 private:
  std::string congestion_;
};

}  // namespace

std::unique_ptr<link::Transport> makeTcp(std::string congestion) {
  return std::make_unique<Tcp>(std::move(congestion));
}

}  // namespace tutti::transports

// The set-up of an edge with a peer that sends any message in any order, and has streams or refuses them: it ends in a
// connection or an Error, asks for few streams, and leaves no descriptor open.
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "fuzz/hostile.h"
#include "fuzz/socket_pair.h"
#include "link/negotiation_channel.h"
#include "link/registry.h"

namespace tutti::fuzz {
namespace {

using link::EdgeMessage;

constexpr int kMostSteps = 64;
constexpr size_t kMostStreams = 64;
constexpr const char* kTransports[] = {"p2p", "shm", "tcp", "none"};

// What the peer has said and gets, under the input's control.
struct Peer {
  std::deque<Bytes> said;
  std::list<SocketPair> streams;
  size_t asked = 0, given = 0;
  bool refuses = false;
};

class HostileMeeting : public link::OobChannel {
 public:
  explicit HostileMeeting(Peer& peer) : peer_(peer) {}
  void put(std::span<const std::byte>) override {}
  std::optional<Bytes> poll() override {
    if (peer_.said.empty()) return std::nullopt;
    Bytes message = std::move(peer_.said.front());
    peer_.said.pop_front();
    return message;
  }
  void requestStream(link::StreamKind) override { require(++peer_.asked <= kMostStreams); }
  std::optional<SecureSocket> pollStream() override {
    if (peer_.asked == peer_.given) return std::nullopt;
    if (peer_.refuses) {
      ++peer_.given;
      throw Error(ErrorCode::kRemote, "the input wants no stream");
    }
    if (peer_.streams.empty() || !peer_.streams.back().ours) return std::nullopt;
    ++peer_.given;
    return SecureSocket{std::move(peer_.streams.back().ours), std::nullopt};
  }

 private:
  Peer& peer_;
};

Bytes hello(Input& in) {
  const auto how = in.take<uint8_t>();
  Writer out;
  out.value(EdgeMessage::kHello).value<uint32_t>(how % 8 == 7 ? 512 : 256).value<uint32_t>(how % 16 == 15 ? 4 : 2);
  for (int count = how / 16 % 8; count > 0; --count) out.text(kTransports[in.take<uint8_t>() % 4]);
  return out.take();
}

Bytes verdict(Input& in) {
  Writer out;
  out.value(EdgeMessage::kVerdict).value<uint32_t>(in.take<uint8_t>() % 8).value<uint8_t>(in.take<uint8_t>() % 3);
  for (size_t i = 0; i < link::kStreamKinds; ++i) out.value<uint8_t>(in.take<uint8_t>() % 10);
  out.value<uint8_t>(in.take<uint8_t>() % 3);
  return out.text(in.text(in.take<uint8_t>())).take();
}

Bytes blob(Input& in) {
  Writer out;
  out.value(EdgeMessage::kBlob).value<uint32_t>(in.take<uint8_t>() % 8);
  return out.block(in.bytes(in.take<uint8_t>())).take();
}

void step(Peer& peer, Input& in) {
  switch (in.take<uint8_t>() % 8) {
    case 0:
      return peer.said.push_back(hello(in));
    case 1:
      return peer.said.push_back(verdict(in));
    case 2:
      return peer.said.push_back(blob(in));
    case 3:
      return peer.said.push_back(toBytes(in.bytes(in.take<uint8_t>())));
    case 4:
      peer.streams.emplace_back();
      return;
    case 5:
      if (!peer.streams.empty()) peer.streams.back().write(in.bytes(in.take<uint8_t>()));
      return;
    case 6:
      if (!peer.streams.empty()) peer.streams.back().endOfStream();
      return;
    default:
      peer.refuses = !peer.refuses;
  }
}

link::Edge edgeOf(bool lower) {
  static const topology::PeerInfo info = topology::describeSelf();
  link::Edge edge;
  edge.self = lower ? 0 : 1;
  edge.peer = lower ? 1 : 0;
  edge.selfInfo = edge.peerInfo = info;
  edge.slotBytes = 256;
  edge.depth = 2;
  return edge;
}

void run(Input in) {
  static const link::Registry registry = link::builtinTransports("");
  const auto how = in.take<uint8_t>();
  Peer peer;
  try {
    link::EdgeSetup setup(registry, edgeOf(how % 2 == 0), std::make_unique<HostileMeeting>(peer),
                          std::chrono::milliseconds(how / 2 % 4 == 0 ? 0 : 60'000));
    std::unique_ptr<link::Connection> connection;
    for (int steps = 0; steps < kMostSteps && !in.empty() && !connection; ++steps) {
      step(peer, in);
      for (int turns = 0; turns < 3 && !connection; ++turns) connection = setup.advance();
    }
  } catch (const Error& error) {
    require(*error.what() != '\0');
  }
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return tutti::fuzz::leavingNoneOpen(tutti::fuzz::run, data, size);
}

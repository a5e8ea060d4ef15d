// Two processes on one host: what only shows when the address spaces are really apart.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <thread>

#include "base/deadline.h"
#include "base/error.h"
#include "link/edge_memory.h"
#include "support/patience.h"
#include "support/traffic_generator.h"
#include "transports/p2p/p2p.h"
#include "transports/shm/shm.h"

namespace tutti::test {
namespace {

// A meeting over a packet socket between parent and child; its one Unix stream is made before the fork.
class SocketMeeting : public link::OobChannel {
 public:
  SocketMeeting(UniqueFd mail, UniqueFd stream) : mail_(std::move(mail)), stream_(std::move(stream)) {}
  void put(std::span<const std::byte> blob) override {
    if (::send(mail_.get(), blob.data(), blob.size(), MSG_NOSIGNAL) < 0) throw systemError("cannot send mail", errno);
  }
  std::optional<Bytes> poll() override {
    Bytes blob(64 << 10);
    const ssize_t n = ::recv(mail_.get(), blob.data(), blob.size(), MSG_DONTWAIT);
    if (n <= 0) return std::nullopt;
    blob.resize(static_cast<size_t>(n));
    return blob;
  }
  void requestStream(link::StreamKind) override { asked_ = true; }
  std::optional<SecureSocket> pollStream() override {
    if (!asked_ || !stream_) return std::nullopt;
    return SecureSocket{std::move(stream_), std::nullopt};
  }

 private:
  UniqueFd mail_, stream_;
  bool asked_ = false;
};

// One rank: brings the edge up and talks. Says what went wrong, or "".
std::string runRank(link::Edge edge, std::unique_ptr<link::OobChannel> oob) {
  const UniqueFd file = createMemoryFile("tutti-test-bell", link::kBellFileBytes);
  const UniqueMap page = mapShared(file.get(), link::kBellFileBytes);
  edge.selfBell = new (page.data()) link::Doorbell;
  edge.selfBellFd = file.get();
  link::Registry registry;
  registry.add(transports::makeP2p());
  registry.add(transports::makeShm());
  try {
    link::EdgeSetup setup(registry, edge, std::move(oob), longWait());
    std::unique_ptr<link::Connection> connection;
    while (!(connection = setup.advance())) std::this_thread::yield();
    if (connection->transport != "shm") return "took " + connection->transport;
    TrafficGenerator traffic(*connection, edge.self, mixedSizes(edge.slotBytes, 4));
    traffic.exchange(3000, 3000);
    const auto deadline = Deadline::in(longWait());
    while (!connection->send.drained() && !deadline.passed()) std::this_thread::yield();
    return traffic.failure();
  } catch (const Error& failure) {
    return failure.what();
  }
}

link::Edge edgeOf(int self, const topology::PeerInfo& mine, const topology::PeerInfo& peers) {
  link::Edge edge;
  edge.self = self;
  edge.peer = 1 - self;
  edge.selfInfo = mine;
  edge.peerInfo = peers;
  edge.slotBytes = 64 << 10;
  return edge;
}

TEST(TwoProcesses, TalkOverShm) {
  int mail[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, mail), 0);
  auto [streamLow, theirs] = unixPair();
  const int streamHigh = theirs.release();  // a child keeps no descriptor that a UniqueFd owns
  const topology::PeerInfo parent = topology::describeSelf();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // The peer's info crosses as bytes, as it would while joining.
    const topology::PeerInfo self = topology::describeSelf();
    const auto bytes = topology::encode(self);
    ::send(mail[1], bytes.data(), bytes.size(), MSG_NOSIGNAL);
    const std::string said =
        runRank(edgeOf(1, self, parent), std::make_unique<SocketMeeting>(UniqueFd(mail[1]), UniqueFd(streamHigh)));
    if (!said.empty()) std::fprintf(stderr, "child: %s\n", said.c_str());
    ::_exit(said.empty() ? 0 : 1);
  }
  ::close(mail[1]);
  ::close(streamHigh);
  Bytes bytes(4096);
  const ssize_t n = ::recv(mail[0], bytes.data(), bytes.size(), 0);
  ASSERT_GT(n, 0);
  const topology::PeerInfo peer = topology::decodePeerInfo(std::span(bytes).first(static_cast<size_t>(n)));
  EXPECT_EQ(peer.hostId, parent.hostId);
  EXPECT_NE(peer.processToken, parent.processToken);
  EXPECT_EQ(runRank(edgeOf(0, parent, peer), std::make_unique<SocketMeeting>(UniqueFd(mail[0]), std::move(streamLow))),
            "");
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tutti::test

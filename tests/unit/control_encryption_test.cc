// Encrypted control lines: who agrees on it, what a man in the middle can do, and the keys of handed-over streams.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <set>

#include "control/streams.h"
#include "control_ranks.h"
#include "net/cipher.h"
#include "support/interloper.h"
#include "support/oob_pair.h"
#include "wire/line.h"

namespace tutti::control::test {
namespace {

using tutti::test::InterceptedPair;
using tutti::test::Tamper;
using tutti::test::Tampering;

HandshakeContext contextWith(Encryption encryption, bool aes = hasAes256Gcm()) { return {{}, 1, 2, encryption, aes}; }

struct Greeting {
  std::array<std::unique_ptr<Handshake>, 2> sides;
  std::array<Handshake::Status, 2> status{};
  bool done() const { return status[0] == Handshake::Status::kDone && status[1] == Handshake::Status::kDone; }
  std::string error(int side) const { return sides[size_t(side)]->error(); }
};

// Lets a client (side 0) and a server greet each other over `ends`, until both have ended.
Greeting greet(const HandshakeContext& client, const HandshakeContext& server, UniqueFd& left, UniqueFd& right) {
  Greeting greeting;
  greeting.sides = {std::make_unique<Handshake>(Handshake::Role::kClient, client),
                    std::make_unique<Handshake>(Handshake::Role::kServer, server)};
  const std::array<UniqueFd*, 2> ends{&left, &right};
  inThreads(2, [&](int i) {
    const auto side = size_t(i);
    auto& status = greeting.status[side];
    const auto deadline = soon();
    do {
      status = greeting.sides[side]->advance(ends[side]->get());
      pollfd ready{ends[side]->get(), POLLIN, 0};
      if (status == Handshake::Status::kWantsRead) ::poll(&ready, 1, 1000);
    } while (status != Handshake::Status::kDone && status != Handshake::Status::kFailed && !deadline.passed());
    if (status == Handshake::Status::kFailed) ends[side]->reset();
  });
  return greeting;
}

Greeting greet(const HandshakeContext& client, const HandshakeContext& server) {
  auto [left, right] = tutti::test::tcpPair();
  return greet(client, server, left, right);
}

TEST(EncryptedHello, IsAgreedOnOrRefusedWithWordsOnBothSides) {
  for (const auto both : {Encryption::kOff, Encryption::kOn}) {
    const Greeting same = greet(contextWith(both), contextWith(both));
    ASSERT_TRUE(same.done()) << same.error(0) << same.error(1);
    const Greeting followed = greet(contextWith(both), contextWith(Encryption::kAsCalled));
    ASSERT_TRUE(followed.done());
    for (const Greeting* greeting : {&same, &followed})
      for (const int side : {0, 1}) EXPECT_EQ(greeting->sides[size_t(side)]->peerEncrypts(), both == Encryption::kOn);
  }
  for (const int encrypting : {0, 1}) {
    const Greeting apart = greet(contextWith(encrypting == 0 ? Encryption::kOn : Encryption::kOff),
                                 contextWith(encrypting == 1 ? Encryption::kOn : Encryption::kOff));
    EXPECT_EQ(apart.status[0], Handshake::Status::kFailed);
    EXPECT_EQ(apart.status[1], Handshake::Status::kFailed);
    EXPECT_EQ(apart.error(encrypting).find("has not set TUTTI_ENCRYPT=1 as this side has"), 0u);
    EXPECT_EQ(apart.error(1 - encrypting).find("has TUTTI_ENCRYPT=1, and this side has not"), 0u);
  }
}

TEST(EncryptedHello, TakesAesOnlyWhereBothHaveIt) {
  for (const bool mine : {false, true})
    for (const bool theirs : {false, true}) {
      const Greeting greeting = greet(contextWith(Encryption::kOn, mine), contextWith(Encryption::kOn, theirs));
      ASSERT_TRUE(greeting.done());
      const CipherKind kind = mine && theirs ? CipherKind::kAes256Gcm : CipherKind::kXChaCha20Poly1305;
      for (const auto& side : greeting.sides) EXPECT_EQ(side->keys().kind, kind);
    }
}

TEST(EncryptedHello, GivesEachUseAndDirectionAKeyOfItsOwn) {
  const Greeting greeting = greet(contextWith(Encryption::kOn), contextWith(Encryption::kOn));
  ASSERT_TRUE(greeting.done());
  std::set<CipherKey> keys;
  for (const auto use : {Handshake::Use::kControl, Handshake::Use::kData, Handshake::Use::kSecret}) {
    const SessionKeys client = greeting.sides[0]->keys(use), server = greeting.sides[1]->keys(use);
    EXPECT_EQ(client.send, server.receive);
    EXPECT_EQ(client.receive, server.send);
    keys.insert({client.send, server.send});
  }
  EXPECT_EQ(keys.size(), 6u);
}

// Nobody on the way can switch encryption off, nor change anything else. The client says its last word before it can
// know what becomes of it.
TEST(EncryptedHello, FailsWhenOneBitOfItIsFlipped) {
  constexpr size_t kFirst = 8 + 32 + 1 + 16, kBytes = kFirst + 16;
  for (size_t at = 0; at < kBytes; ++at) {
    for (const auto server : {Encryption::kOn, Encryption::kAsCalled}) {
      InterceptedPair pair({Tampering::kFlip, at, 1, static_cast<uint8_t>(at % 8)});
      const Greeting greeting = greet(contextWith(Encryption::kOn), contextWith(server), pair.left, pair.right);
      EXPECT_EQ(greeting.status[0], at < kFirst ? Handshake::Status::kFailed : Handshake::Status::kDone) << at;
      EXPECT_EQ(greeting.status[1], Handshake::Status::kFailed) << at;
    }
  }
}

struct NamedPair {
  HandshakeContext client = contextWith(Encryption::kOn), server = client;
  NamedPair() {
    client.named = server.named = true;
    client.own = noise::drawKeyPair();
    server.own = noise::drawKeyPair();
    client.peer = server.own.open;
  }
};

TEST(NamedHello, TellsTheServerWhoCalls) {
  const NamedPair named;
  const Greeting greeting = greet(named.client, named.server);
  ASSERT_TRUE(greeting.done()) << greeting.error(0) << greeting.error(1);
  EXPECT_EQ(greeting.sides[1]->peerKey(), named.client.own.open);
  EXPECT_EQ(greeting.sides[0]->keys().send, greeting.sides[1]->keys().receive);
}

TEST(NamedHello, IsAnsweredOnlyByTheOneThatWasMeant) {
  NamedPair named;
  named.server.own = noise::drawKeyPair();
  const Greeting greeting = greet(named.client, named.server);
  EXPECT_EQ(greeting.status[0], Handshake::Status::kFailed);
  EXPECT_EQ(greeting.status[1], Handshake::Status::kFailed);
  NamedPair guessing;
  guessing.client.secret[0] = std::byte{1};
  EXPECT_EQ(greet(guessing.client, guessing.server).status[1], Handshake::Status::kFailed);
}

TEST(NamedHello, FailsWhenOneBitOfItIsFlipped) {
  constexpr size_t kFirst = 8 + 32 + 48 + 1 + 16, kBytes = kFirst + 16;
  for (size_t at = 0; at < kBytes; ++at) {
    const NamedPair named;
    InterceptedPair pair({Tampering::kFlip, at, 1, static_cast<uint8_t>(at % 8)});
    const Greeting greeting = greet(named.client, named.server, pair.left, pair.right);
    EXPECT_EQ(greeting.status[1], Handshake::Status::kFailed) << at;
  }
}

TEST(LocalHello, GivesFreshKeysAndMeetsNoOtherKind) {
  HandshakeContext local = contextWith(Encryption::kOff);
  local.local = true;
  const Greeting first = greet(local, local), second = greet(local, local);
  ASSERT_TRUE(first.done() && second.done());
  EXPECT_EQ(first.sides[0]->keys().send, first.sides[1]->keys().receive);
  EXPECT_NE(first.sides[0]->keys().send, second.sides[0]->keys().send);
  EXPECT_EQ(greet(local, contextWith(Encryption::kOff)).status[1], Handshake::Status::kFailed);
  EXPECT_EQ(greet(contextWith(Encryption::kOff), local).status[1], Handshake::Status::kFailed);
}

// Two lines, each on a loop of its own, and what happened at the right one.
class SealedLines : public testing::Test {
 protected:
  struct Outcome {
    std::vector<Frame> frames;
    std::string closed;
  };
  // The left sends `count` frames of `bytes` bytes with somebody in between; until the right has all, or breaks.
  static Outcome sendFrames(int count, size_t bytes, Tamper tamper) {
    InterceptedPair pair(tamper);
    for (const UniqueFd* end : {&pair.left, &pair.right}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    Outcome outcome;
    Reactor leftLoop, rightLoop;
    const auto right =
        Line::open(rightLoop, std::move(pair.right), Handshake::Role::kServer, contextWith(Encryption::kOn), {});
    Line::Events events;
    events.frame = [&](Frame& frame) {
      outcome.frames.push_back(std::move(frame));
      if (outcome.frames.size() == size_t(count)) rightLoop.stop();
    };
    events.closed = [&](const std::string& why) {
      outcome.closed = why;
      rightLoop.stop();
    };
    right->setEvents(std::move(events));
    rightLoop.after(std::chrono::seconds(20), [&] { rightLoop.stop(); });
    std::thread sender([&] {
      const auto left =
          Line::open(leftLoop, std::move(pair.left), Handshake::Role::kClient, contextWith(Encryption::kOn), {});
      Line::Events ready;
      ready.ready = [&] {
        for (int i = 0; i < count; ++i) left->send(Kind::kMail, payloadOf(i, bytes));
      };
      left->setEvents(std::move(ready));
      leftLoop.run([](const std::string& what) { FAIL() << what; });
      left->close();
    });
    rightLoop.run([](const std::string& what) { FAIL() << what; });
    right->close();
    leftLoop.post([&] { leftLoop.stop(); });
    sender.join();
    return outcome;
  }
  static Bytes payloadOf(int i, size_t bytes) { return Bytes(bytes, std::byte(i + 1)); }
  static void expectRight(const Outcome& outcome, size_t bytes) {
    for (size_t i = 0; i < outcome.frames.size(); ++i) {
      EXPECT_EQ(outcome.frames[i].type, static_cast<uint8_t>(Kind::kMail));
      EXPECT_EQ(outcome.frames[i].payload, payloadOf(int(i), bytes));
    }
  }
  static constexpr size_t kHello = 8 + 32 + 1 + 16 + 16;  // from the left
};

TEST_F(SealedLines, CarryFramesOfAnySize) {
  for (const size_t bytes : {size_t(0), size_t(1), size_t(300), size_t(1) << 20}) {
    const Outcome outcome = sendFrames(5, bytes, {});
    EXPECT_EQ(outcome.frames.size(), 5u);
    EXPECT_EQ(outcome.closed, "");
    expectRight(outcome, bytes);
  }
}

TEST_F(SealedLines, NoticeOneBitAnywhere) {
  constexpr size_t kBytes = 20, kFrame = kSealedHeaderBytes + kBytes + Cipher::kTagBytes;
  for (size_t at = 0; at < kFrame; ++at) {
    const Outcome outcome =
        sendFrames(3, kBytes, {Tampering::kFlip, kHello + kFrame + at, 1, static_cast<uint8_t>(at % 8)});
    EXPECT_EQ(outcome.frames.size(), 1u) << at;
    EXPECT_NE(outcome.closed.find("fails its integrity check"), std::string::npos) << at << ": " << outcome.closed;
    EXPECT_NE(outcome.closed.find("(127.0.0.1:"), std::string::npos) << outcome.closed;
    expectRight(outcome, kBytes);
  }
}

TEST_F(SealedLines, NoticeRepeatedDroppedSwappedAndCutFrames) {
  constexpr size_t kBytes = 20, kFrame = kSealedHeaderBytes + kBytes + Cipher::kTagBytes;
  for (const auto what : {Tampering::kRepeat, Tampering::kDrop, Tampering::kSwap, Tampering::kTruncate}) {
    for (const size_t bytes : {kFrame, kSealedHeaderBytes, size_t(1)}) {
      const Outcome outcome = sendFrames(6, kBytes, {what, kHello + kFrame, bytes});
      EXPECT_LE(outcome.frames.size(), 2u);
      EXPECT_NE(outcome.closed, "");
      expectRight(outcome, kBytes);
    }
  }
}

// Stands in for a socket that the system refuses to write to for a moment.
class NoSocketFor {
 public:
  explicit NoSocketFor(int fd) : fd_(fd), kept_(::dup(fd)) {
    const UniqueFd other(::open("/dev/null", O_RDWR | O_CLOEXEC));
    EXPECT_EQ(::dup2(other.get(), fd_), fd_);
  }
  ~NoSocketFor() { EXPECT_EQ(::dup2(kept_.get(), fd_), fd_); }
  NoSocketFor(const NoSocketFor&) = delete;
  NoSocketFor& operator=(const NoSocketFor&) = delete;

 private:
  const int fd_;
  const UniqueFd kept_;
};

// What came after it would be in the clear, and behind a part of a frame.
TEST_F(SealedLines, SayNothingMoreAfterAnErrorThatPasses) {
  InterceptedPair pair({});
  for (const UniqueFd* end : {&pair.left, &pair.right}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  Reactor loop;
  Outcome outcome;
  const int socket = pair.left.get();
  const auto right =
      Line::open(loop, std::move(pair.right), Handshake::Role::kServer, contextWith(Encryption::kOn), {});
  const auto left = Line::open(loop, std::move(pair.left), Handshake::Role::kClient, contextWith(Encryption::kOn), {});
  Line::Events here, there;
  here.ready = [&] {
    left->send(Kind::kMail, payloadOf(0, 20));
    {
      const NoSocketFor now(socket);
      left->send(Kind::kMail, payloadOf(1, 20));
    }
    left->send(Kind::kMail, payloadOf(2, 20));
  };
  there.frame = [&](Frame& frame) { outcome.frames.push_back(std::move(frame)); };
  there.closed = [&](const std::string& why) {
    outcome.closed = why;
    loop.stop();
  };
  left->setEvents(std::move(here));
  right->setEvents(std::move(there));
  loop.after(std::chrono::seconds(20), [&] { loop.stop(); });
  loop.run([](const std::string& what) { FAIL() << what; });
  for (const auto& line : {left, right}) line->close();
  EXPECT_EQ(outcome.frames.size(), 1u);
  EXPECT_EQ(outcome.closed, "connection closed");
  expectRight(outcome, 20);
}

// Nor may the socket go to somebody else, who would go on behind that part: a stream of data, say.
TEST_F(SealedLines, AreNotHandedOnAfterAnError) {
  InterceptedPair pair({});
  for (const UniqueFd* end : {&pair.left, &pair.right}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  Reactor loop;
  const int socket = pair.left.get();
  const auto right =
      Line::open(loop, std::move(pair.right), Handshake::Role::kServer, contextWith(Encryption::kOn), {});
  const auto left = Line::open(loop, std::move(pair.left), Handshake::Role::kClient, contextWith(Encryption::kOn), {});
  Line::Events here;
  here.ready = [&] {
    EXPECT_TRUE(left->drained());
    {
      const NoSocketFor now(socket);
      left->send(Kind::kMail, payloadOf(1, 20));
    }
    EXPECT_FALSE(left->drained());
    const SecureSocket taken = left->take();
    EXPECT_FALSE(taken.fd);
    EXPECT_FALSE(taken.keys);
    loop.stop();
  };
  left->setEvents(std::move(here));
  loop.after(std::chrono::seconds(20), [&] { loop.stop(); });
  loop.run([](const std::string& what) { FAIL() << what; });
  EXPECT_FALSE(left->isOpen());
  right->close();
}

// A rank that encrypts takes no stream over a network that came without keys, whatever the hello came to.
TEST_F(SealedLines, AreWhatStreamsOfDataComeOver) {
  for (const auto encryption : {Encryption::kOff, Encryption::kOn}) {
    InterceptedPair pair({});
    for (const UniqueFd* end : {&pair.left, &pair.right}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    Reactor loop;
    Mailbox mailbox;
    Streams streams(loop, mailbox, 1, Encryption::kOn, [](const Mail&) {});
    const auto right = Line::open(loop, std::move(pair.right), Handshake::Role::kServer, contextWith(encryption), {});
    const auto left = Line::open(loop, std::move(pair.left), Handshake::Role::kClient, contextWith(encryption), {});
    std::string refused;
    Line::Events here, there;
    here.ready = [&] { left->send(Kind::kStream, encode(StreamHello{0, 9, StreamKind::kTcp})); };
    there.frame = [&](Frame& frame) {
      refused = thrownBy([&] { streams.admit(decodeStreamHello(frame.payload), right->take()); }).text;
      loop.stop();
    };
    left->setEvents(std::move(here));
    right->setEvents(std::move(there));
    loop.after(std::chrono::seconds(20), [&] { loop.stop(); });
    loop.run([](const std::string& what) { FAIL() << what; });
    mailbox.wantStream(0, 9, StreamKind::kTcp);
    const auto stream = mailbox.pollStream(0, 9);
    EXPECT_EQ(stream.has_value(), encryption == Encryption::kOn);
    EXPECT_EQ(refused.find("without keys") != std::string::npos, encryption == Encryption::kOff) << refused;
    left->close();
  }
}

Network overTcp() {
  Network network;
  network.unixSockets = false;
  return network;
}

TEST(EncryptedPlane, DoesWhatAClearOneDoes) {
  const auto planes = joinAll(5, overTcp(), [](JoinRequest& request) { request.encrypt = true; });
  inThreads(5, [&](int r) {
    Plane& plane = *planes[size_t(r)];
    EXPECT_EQ(toText(plane.info((r + 1) % 5)), "card of " + std::to_string((r + 1) % 5));
    plane.post((r + 2) % 5, 9, toBytes("from " + std::to_string(r)));
    EXPECT_EQ(toText(awaitMail(plane, (r + 3) % 5, 9)), "from " + std::to_string((r + 3) % 5));
    const auto all = plane.allGather(toBytes(std::string(100000, char('a' + r))), soon());
    for (int other = 0; other < 5; ++other)
      EXPECT_EQ(toText(all[size_t(other)]), std::string(100000, char('a' + other)));
  });
}

// Only what leaves the host has keys, and both ends have the same.
TEST(EncryptedPlane, GivesTcpStreamsKeys) {
  for (const bool encrypt : {false, true}) {
    const auto planes = joinAll(2, [=](JoinRequest& request) { request.encrypt = encrypt; });
    for (const auto kind : {StreamKind::kTcp, StreamKind::kUnix}) {
      std::array<std::optional<SecureSocket>, 2> ends;
      for (const int r : {0, 1}) planes[size_t(r)]->requestStream(1 - r, 40 + uint64_t(kind), kind);
      for (const int r : {0, 1}) {
        Plane& plane = *planes[size_t(r)];
        ends[size_t(r)] = awaitFrom([&] { return plane.pollStream(1 - r, 40 + uint64_t(kind)); });
        ASSERT_TRUE(ends[size_t(r)]);
        EXPECT_EQ(ends[size_t(r)]->keys.has_value(), encrypt && kind == StreamKind::kTcp);
      }
      if (!ends[0]->keys || !ends[1]->keys) continue;
      EXPECT_EQ(ends[0]->keys->send, ends[1]->keys->receive);
      EXPECT_EQ(ends[0]->keys->receive, ends[1]->keys->send);
      EXPECT_EQ(ends[0]->keys->kind, ends[1]->keys->kind);
    }
  }
}

TEST(EncryptedPlane, RefusesRanksThatDiffer) {
  for (const bool unix : {true, false}) {
    Network network;
    network.unixSockets = unix;
    const UniqueId id = openRoot(network, soon());
    inThreads(3, [&](int r) {
      JoinRequest request = requestFor(id, r, 3, soon(), network);
      request.encrypt = r == 1;
      const Thrown thrown = thrownBy([&] { joinPlane(request); });
      EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage)) << thrown.text;
      EXPECT_NE(thrown.text.find("rank 1 (host "), std::string::npos) << thrown.text;
      EXPECT_NE(thrown.text.find("has it on (TUTTI_ENCRYPT=1)"), std::string::npos) << thrown.text;
    });
  }
}

}  // namespace
}  // namespace tutti::control::test

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/random.h"
#include "control/gathering.h"
#include "job/unique_id.h"
#include "join/tree.h"
#include "net/frame.h"
#include "net/handshake.h"
#include "net/network.h"
#include "process/fd.h"
#include "wire/messages.h"

namespace tutti::control {
namespace {

Address address(bool v6, uint8_t last, uint32_t scope = 0) {
  Address made;
  made.v6 = v6;
  made.ip[0] = v6 ? 0xfe : 10;
  made.ip[v6 ? 15 : 3] = last;
  made.port = static_cast<uint16_t>(1000 + last);
  made.scope = scope;
  return made;
}

UniqueId sample() {
  UniqueId id;
  for (size_t i = 0; i < id.secret.size(); ++i) id.secret[i] = std::byte(i * 17);
  id.job = 0x0123456789abcdef;
  id.addresses = {address(false, 1), address(true, 2), address(true, 3, 7), address(false, 4)};
  return id;
}

TEST(UniqueId, SurvivesEncodingAndHex) {
  const UniqueId id = sample(), back = decode(fromHex(toHex(encode(id))));
  EXPECT_EQ(back.secret, id.secret);
  EXPECT_EQ(back.job, id.job);
  EXPECT_EQ(back.addresses, id.addresses);
}

TEST(UniqueId, KeepsAsManyAddressesAsFit) {
  UniqueId id = sample();
  id.addresses.clear();
  for (uint8_t i = 0; i < 40; ++i) id.addresses.push_back(address(i % 2 == 1, i));
  const UniqueId back = decode(encode(id));
  ASSERT_GE(back.addresses.size(), 7U);
  ASSERT_LT(back.addresses.size(), 40U);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(back.addresses[i], id.addresses[i]) << "the best come first";
}

TEST(UniqueId, EveryFlippedBitIsRefused) {
  const RawUniqueId raw = encode(sample());
  for (size_t bit = 0; bit < raw.size() * 8; ++bit) {
    RawUniqueId bent = raw;
    bent[bit / 8] ^= std::byte(1 << (bit % 8));
    EXPECT_THROW(decode(bent), Error) << bit;
  }
  EXPECT_THROW(fromHex("12"), Error);
  EXPECT_THROW(fromHex(std::string(256, 'g')), Error);
}

TEST(UniqueId, AddressesAreReadable) {
  EXPECT_EQ(toString(address(false, 9)), "10.0.0.9:1009");
  EXPECT_EQ(toString(address(true, 2, 3)), "[fe00::2%3]:1002");
}

TEST(Tree, HopsLeadHome) {
  for (const int size : {1, 2, 3, 7, 16, 100})
    for (int from = 0; from < size; ++from)
      for (int to = 0; to < size; ++to) {
        int at = from, hops = 0;
        for (; at != to && hops < 64; ++hops) {
          const int hop = tree::nextHop(at, to);
          at = hop < 0 ? tree::parentOf(at) : hop;
          ASSERT_TRUE(at >= 0 && at < size);
        }
        ASSERT_EQ(at, to);
      }
}

TEST(Tree, TheWayBetweenTwoRanksIsWhatAQuestionPasses) {
  using Way = std::vector<int>;
  EXPECT_EQ(tree::between(3, 3), Way());
  EXPECT_EQ(tree::between(1, 3), Way());
  EXPECT_EQ(tree::between(3, 1), Way());
  EXPECT_EQ(tree::between(1, 2), Way{0});
  EXPECT_EQ(tree::between(3, 4), Way{1});
  EXPECT_EQ(tree::between(3, 5), (Way{1, 0, 2}));
  EXPECT_EQ(tree::between(0, 12), (Way{2, 5}));
}

TEST(Tree, SubtreesOfTheChildrenAndTheRankItselfAreAll) {
  for (const int size : {1, 2, 5, 16, 33})
    EXPECT_EQ(tree::subtree(1, size).size() + tree::subtree(2, size).size() + 1, size_t(size));
}

TEST(Gathering, RefusesWhatDoesNotAddUp) {
  const auto entry = [](int rank) { return Writer().value<int32_t>(rank).text("x").take(); };
  EXPECT_EQ(Gathering::toTable(entry(0), 1).size(), 1U);
  EXPECT_THROW(Gathering::toTable(entry(0), 2), Error);
  EXPECT_THROW(Gathering::toTable(entry(1), 1), Error);
  EXPECT_THROW(Gathering::toTable(entry(-1), 1), Error);
  Gathering at(0, 2);
  at.addOwn(3, {});
  EXPECT_FALSE(at.take(3).has_value());
  EXPECT_EQ(at.missing(3), std::vector<int>{1});
  EXPECT_EQ(Gathering(0, 4).missing(3), (std::vector{0, 1, 2})) << "of rank 3 it is rank 1 that speaks";
  EXPECT_THROW(at.addOwn(3, {}), Error);
  at.addChild(3, Gathering::Source::kFirstChild, entry(1));
  EXPECT_TRUE(at.take(3).has_value());
  EXPECT_FALSE(at.take(3).has_value());
}

TEST(Messages, RanksAreListedShortly) {
  EXPECT_EQ(listRanks({3}), "3");
  EXPECT_EQ(listRanks({7, 1, 2, 3, 9, 10}), "1-3, 7, 9, 10");
  std::vector<int> odd;
  for (int r = 1; r < 100; r += 2) odd.push_back(r);
  EXPECT_NE(listRanks(odd).find("and 34 more"), std::string::npos);
}

TEST(Messages, ShortenedOnesAreRefused) {
  Hello hello;
  hello.who = {3, "host", 41, {9, {}, "name", {address(true, 1)}}};
  const Bytes whole = encode(hello);
  EXPECT_EQ(decodeHello(whole).who.endpoint.addresses, hello.who.endpoint.addresses);
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_THROW(decodeHello(std::span(whole).first(n)), Error) << n;
}

TEST(Messages, TimesOfAnotherRankStayInTheClocksRange) {
  Hello hello;
  for (const int64_t wild : {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min(), int64_t{-1}}) {
    hello.leftMs = hello.heartbeatMs = wild;
    const Hello read = decodeHello(encode(hello));
    for (const int64_t ms : {read.leftMs, read.heartbeatMs}) {
      EXPECT_GE(ms, 0);
      EXPECT_LT(ms, int64_t{1} << 31);
    }
  }
}

TEST(Network, InterfaceLists) {
  EXPECT_TRUE(matchesInterface("", "eth0"));
  EXPECT_TRUE(matchesInterface("eth,ib", "ib1"));
  EXPECT_FALSE(matchesInterface("eth,ib", "lo"));
  EXPECT_TRUE(matchesInterface("=eth0", "eth0"));
  EXPECT_FALSE(matchesInterface("=eth", "eth0"));
  EXPECT_FALSE(matchesInterface("^docker,=lo", "docker0"));
  EXPECT_FALSE(matchesInterface("^docker,=lo", "lo"));
  EXPECT_TRUE(matchesInterface("^docker,=lo", "eth0"));
  EXPECT_TRUE(matchesInterface("eth,=ib0", "eth1"));
  EXPECT_FALSE(matchesInterface("eth,=ib0", "ib01"));
}

// What is in front holds for the whole list, as NCCL reads it.
TEST(Interfaces, AreNamedAsNcclNamesThem) {
  EXPECT_TRUE(matchesInterface("=eth0,ib0", "ib0"));
  EXPECT_FALSE(matchesInterface("=eth0,ib0", "ib01"));
  EXPECT_FALSE(matchesInterface("^=docker0,lo", "lo"));
  EXPECT_TRUE(matchesInterface("^=docker0,lo", "lo1"));
  EXPECT_TRUE(matchesInterface("^=", "lo"));
}

struct SocketPair {
  SocketPair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    a = UniqueFd(ends[0]);
    b = UniqueFd(ends[1]);
  }
  UniqueFd a, b;
};

using Status = Handshake::Status;

// Lets both sides advance in turn until neither can.
std::pair<Status, Status> shakeHands(Handshake& client, Handshake& server, SocketPair& pair) {
  Status c = Status::kWantsRead, s = Status::kWantsRead;
  for (int i = 0; i < 8; ++i) {
    if (c != Status::kDone && c != Status::kFailed) c = client.advance(pair.a.get());
    if (c == Status::kFailed) ::shutdown(pair.a.get(), SHUT_RDWR);
    if (s != Status::kDone && s != Status::kFailed) s = server.advance(pair.b.get());
    if (s == Status::kFailed) ::shutdown(pair.b.get(), SHUT_RDWR);
  }
  return {c, s};
}

TEST(Handshake, GivesBothSidesTheSameKeys) {
  const HandshakeContext context{{}, 1, 2};
  Handshake client(Handshake::Role::kClient, context), server(Handshake::Role::kServer, context);
  SocketPair pair;
  ASSERT_EQ(shakeHands(client, server, pair), std::pair(Status::kDone, Status::kDone));
  EXPECT_EQ(client.keys().send, server.keys().receive);
  EXPECT_EQ(client.keys().receive, server.keys().send);
  EXPECT_NE(client.keys().send, client.keys().receive);
}

TEST(Handshake, RefusesAnotherSecretJobOrListener) {
  const HandshakeContext right{{}, 1, 2};
  HandshakeContext wrong[3] = {right, right, right};
  wrong[0].secret[15] = std::byte{1};
  wrong[1].job = 3;
  wrong[2].listener = 3;
  for (const auto& context : wrong) {
    Handshake client(Handshake::Role::kClient, context), server(Handshake::Role::kServer, right);
    SocketPair pair;
    EXPECT_EQ(shakeHands(client, server, pair), std::pair(Status::kFailed, Status::kFailed));
    EXPECT_NE(server.error().find("secret"), std::string::npos);
  }
}

// A recorded hello gets an answer that helps nobody, and what came after it then is worth nothing now.
TEST(Handshake, RefusesBentAndReplayedHellos) {
  const HandshakeContext context{{}, 1, 2};
  SocketPair pair;
  Handshake client(Handshake::Role::kClient, context), server(Handshake::Role::kServer, context);
  std::array<std::byte, 128> hello{}, proof{};
  client.advance(pair.a.get());
  const auto helloBytes = size_t(::recv(pair.b.get(), hello.data(), hello.size(), MSG_PEEK));
  server.advance(pair.b.get());
  client.advance(pair.a.get());
  const auto proofBytes = size_t(::recv(pair.b.get(), proof.data(), proof.size(), MSG_PEEK));
  ASSERT_EQ(server.advance(pair.b.get()), Status::kDone);
  SocketPair again;
  Handshake other(Handshake::Role::kServer, context);
  ASSERT_EQ(::send(again.a.get(), hello.data(), helloBytes, 0), ssize_t(helloBytes));
  ASSERT_EQ(other.advance(again.b.get()), Status::kWantsRead);
  ASSERT_EQ(::send(again.a.get(), proof.data(), proofBytes, 0), ssize_t(proofBytes));
  EXPECT_EQ(other.advance(again.b.get()), Status::kFailed);
}

// What a client says first.
std::vector<std::byte> firstWords(const HandshakeContext& context) {
  SocketPair pair;
  Handshake client(Handshake::Role::kClient, context);
  client.advance(pair.a.get());
  std::vector<std::byte> words(256);
  words.resize(size_t(::recv(pair.b.get(), words.data(), words.size(), 0)));
  return words;
}

// The answer of a listener to these words: its status, how far it came, and whether it said anything.
struct Answered {
  Status status;
  int steps;
  bool spoke;
};
Answered answerTo(const std::vector<std::byte>& words, const HandshakeContext& context) {
  SocketPair pair;
  Handshake server(Handshake::Role::kServer, context);
  EXPECT_EQ(::send(pair.a.get(), words.data(), words.size(), 0), ssize_t(words.size()));
  const Status status = server.advance(pair.b.get());
  std::byte byte;
  return {status, server.messagesDone(), ::recv(pair.a.get(), &byte, 1, MSG_DONTWAIT) == 1};
}

// Of each kind: the caller, and the listener that remembers what has come.
struct RepeatedHello : testing::TestWithParam<const char*> {
  RepeatedHello() {
    client.local = server.local = GetParam() == std::string("Local");
    client.named = server.named = GetParam() == std::string("Named");
    client.own = noise::drawKeyPair();
    server.own = noise::drawKeyPair();
    client.peer = server.own.open;
    server.seen = seen.get();
  }
  void expectAnswered(const std::vector<std::byte>& words) {
    const Answered answer = answerTo(words, server);
    EXPECT_EQ(answer.status, Status::kWantsRead);
    EXPECT_TRUE(answer.spoke);
  }
  void expectHungUpOn(const std::vector<std::byte>& words) {
    const Answered answer = answerTo(words, server);
    EXPECT_EQ(answer.status, Status::kFailed);
    EXPECT_EQ(answer.steps, 0);
    EXPECT_FALSE(answer.spoke);
  }
  const std::unique_ptr<SeenHellos> seen = std::make_unique<SeenHellos>();
  HandshakeContext client{{}, 1, 2}, server = client;
};
INSTANTIATE_TEST_SUITE_P(Of, RepeatedHello, testing::Values("Anybody", "Named", "Local"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(RepeatedHello, IsNotAnswered) {
  const auto words = firstWords(client), others = firstWords(client);
  expectAnswered(words);
  for (int i = 0; i < 3; ++i) expectHungUpOn(words);
  expectAnswered(others);
  expectHungUpOn(words);
  expectHungUpOn(others);
}

// Who does not know the secret can keep nobody out by sending beginnings of others' hellos.
TEST_P(RepeatedHello, IsOneThatHasOpenedBefore) {
  const auto words = firstWords(client);
  auto bent = words;
  bent.back() ^= std::byte{1};
  expectHungUpOn(bent);
  expectAnswered(words);
}

TEST(SeenHellos, AreTheLastOnes) {
  SeenHellos seen;
  std::vector<noise::Key> keys(2 * SeenHellos::kKept);
  for (noise::Key& key : keys) {
    fillRandom(key.data(), key.size());
    EXPECT_FALSE(seen.has(key));
    seen.add(key);
    EXPECT_TRUE(seen.has(key));
  }
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(seen.has(keys[i]), i >= SeenHellos::kKept) << i;
}

template <class Object>
bool holds(const Object& object, std::span<const std::byte> secret) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&object);
  return std::search(bytes, bytes + sizeof object, secret.begin(), secret.end()) != bytes + sizeof object;
}

TEST(SecretsOfAHello, AreGoneWhenItIsDone) {
  HandshakeContext context{{}, 1, 2};
  fillRandom(context.secret.data(), context.secret.size());
  context.named = true;
  HandshakeContext client = context, server = context;
  client.own = noise::drawKeyPair();
  server.own = noise::drawKeyPair();
  client.peer = server.own.open;
  Handshake one(Handshake::Role::kClient, client), other(Handshake::Role::kServer, server);
  EXPECT_TRUE(holds(one, client.own.secret));
  SocketPair pair;
  ASSERT_EQ(shakeHands(one, other, pair), std::pair(Status::kDone, Status::kDone));
  for (const Handshake* side : {&one, &other})
    for (const HandshakeContext* of : {&client, &server}) {
      EXPECT_FALSE(holds(*side, of->secret));
      EXPECT_FALSE(holds(*side, of->own.secret));
    }
  EXPECT_EQ(other.peerKey(), client.own.open);
}

// Nor do they become some that everybody can make.
TEST(KeysOfAHello, AreGoneWhenTheyAreForgotten) {
  const HandshakeContext context{{}, 1, 2};
  Handshake one(Handshake::Role::kClient, context), other(Handshake::Role::kServer, context);
  SocketPair pair;
  ASSERT_EQ(shakeHands(one, other, pair), std::pair(Status::kDone, Status::kDone));
  const auto all = {Handshake::Use::kControl, Handshake::Use::kData, Handshake::Use::kSecret};
  std::vector<SessionKeys> before;
  for (const auto use : all) before.push_back(one.keys(use));
  one.forgetKeys();
  other.forgetKeys();
  size_t i = 0;
  for (const auto use : all) {
    const SessionKeys mine = one.keys(use), theirs = other.keys(use);
    EXPECT_NE(mine.send, before[i].send);
    EXPECT_NE(mine.receive, before[i++].receive);
    EXPECT_NE(mine.send, theirs.receive);
  }
}

TEST(Frame, ComesWholeHoweverItIsCut) {
  SocketPair pair;
  FrameQueue out;
  const auto payload = std::make_shared<const Bytes>(Bytes(3000, std::byte{7}));
  out.push(5, payload);
  out.push(6, std::make_shared<const Bytes>());
  ASSERT_TRUE(out.flush(pair.a.get()));
  std::vector<std::byte> wire(4000);
  wire.resize(size_t(::recv(pair.b.get(), wire.data(), wire.size(), 0)));
  ASSERT_EQ(wire.size(), 3000 + 2 * kFrameHeaderBytes);
  FrameReader in;
  Frame frame;
  std::vector<Frame> frames;
  for (const std::byte b : wire) {
    ASSERT_EQ(::send(pair.a.get(), &b, 1, 0), 1);
    while (in.read(pair.b.get(), frame) == FrameReader::Status::kFrame) frames.push_back(frame);
  }
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].type, 5);
  EXPECT_EQ(frames[0].payload, *payload);
  EXPECT_TRUE(frames[1].payload.empty());
  pair.a.reset();
  EXPECT_EQ(in.read(pair.b.get(), frame), FrameReader::Status::kClosed);
}

TEST(Frame, RefusesStrangeHeadersAndOversizedLengths) {
  const std::array<std::array<unsigned char, 8>, 4> headers = {{{'G', 'E', 'T', ' ', '/', ' ', 'H', 'T'},
                                                                {'T', 'f', 9, 1, 0, 0, 0, 0},
                                                                {'T', 'f', 1, 1, 255, 255, 255, 255},
                                                                {'T', 'f', 1, 1, 101, 0, 0, 0}}};
  for (const auto& header : headers) {
    SocketPair pair;
    FrameReader in(100);
    Frame frame;
    ASSERT_EQ(::send(pair.a.get(), header.data(), header.size(), 0), 8);
    EXPECT_EQ(in.read(pair.b.get(), frame), FrameReader::Status::kBroken);
  }
}

}  // namespace
}  // namespace tutti::control

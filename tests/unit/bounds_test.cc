// What a peer that has proved the secret may still not do: long frames, values that are none, mail and streams without
// end.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "control/gathering.h"
#include "control/mailbox.h"
#include "fuzz/world.h"
#include "job/parcel.h"
#include "net/frame.h"
#include "net/socket.h"
#include "support/few_files.h"
#include "support/open_files.h"
#include "wire/messages.h"

namespace tutti::control {
namespace {

// --- records ---

enum class Fruit : uint8_t { kApple = 2, kPear, kPlum };

TEST(Record, HasNoBoolButTwo) {
  for (int byte = 0; byte < 256; ++byte) {
    const Bytes one = Writer().value(static_cast<uint8_t>(byte)).take();
    if (byte < 2)
      EXPECT_EQ(Reader(one).value<bool>(), byte == 1);
    else
      EXPECT_THROW(Reader(one).value<bool>(), Error) << byte;
  }
}

TEST(Record, HasNoValueOfAnEnumerationButItsOwn) {
  for (int byte = 0; byte < 256; ++byte) {
    const Bytes one = Writer().value(static_cast<uint8_t>(byte)).take();
    const auto read = [&] { return Reader(one).oneOf(Fruit::kApple, Fruit::kPlum); };
    if (byte >= 2 && byte <= 4)
      EXPECT_EQ(static_cast<int>(read()), byte);
    else
      EXPECT_THROW(read(), Error) << byte;
  }
}

TEST(Record, OfAHelloHasTimesThatClocksCanTake) {
  for (const int64_t ms : {std::numeric_limits<int64_t>::min(), int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    Hello hello;
    hello.leftMs = hello.heartbeatMs = ms;
    const Hello back = decodeHello(encode(hello));
    for (const int64_t came : {back.leftMs, back.heartbeatMs}) {
      EXPECT_GE(came, 0);
      EXPECT_LE(came, std::numeric_limits<int32_t>::max());
    }
  }
}

TEST(Record, OfAFailureIsOfOneThatIsOver) {
  const Refusal refusal{ErrorCode::kInProgress, "wait"};
  EXPECT_THROW(decodeRefusal(encode(refusal)), Error);
  EXPECT_THROW(decodeShrinkTried(encode(ShrinkTried{1, refusal})), Error);
  EXPECT_THROW(decodeFailure(encode(Failure{0, Stop::kError, refusal.code, refusal.text})), Error);
}

TEST(Record, HasNamesAndTextsForLogs) {
  const std::string steering = "\x1b[31mn1\n";
  Hello hello;
  hello.who.host = steering;
  hello.agreement = {{steering, steering}};
  const Hello back = decodeHello(encode(hello));
  EXPECT_EQ(describe(back.who), "rank -1 (host \\x1b[31mn1\\x0a, pid 0)");
  EXPECT_EQ(back.agreement[0].name + back.agreement[0].value, "\\x1b[31mn1\\x0a\\x1b[31mn1\\x0a");
  EXPECT_EQ(decodeRefusal(encode(Refusal{ErrorCode::kRemote, steering})).text, "\\x1b[31mn1\\x0a");
  EXPECT_EQ(decodeFailure(encode(Failure{0, Stop::kAbort, ErrorCode::kRemote, steering})).text, "\\x1b[31mn1\\x0a");
  EXPECT_EQ(decodeWords(encodeWords(steering)), "\\x1b[31mn1\\x0a");
  Place place;
  place.parent.emplace().host = std::string(5000, 'x');
  EXPECT_LE(decodePlace(encode(place)).parent->host.size(), 256u);
  place.parent->endpoint.unixName = steering;
  EXPECT_THROW(decodePlace(encode(place)), Error);
}

// --- frames ---

std::pair<UniqueFd, UniqueFd> streams() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Of what a kind can be, and not of what a frame can be.
TEST(FramesOfAKind, AreNoLongerThanItCanBe) {
  for (int type = 0; type < 256; ++type)
    for (const int ranks : {1, 2, 16384}) {
      const size_t most = mostBytes(static_cast<Kind>(type), ranks);
      for (const size_t bytes : {most, most + 1, size_t{1} << 30, size_t{0xffffffff}}) {
        const auto [ours, theirs] = streams();
        FrameReader reader;
        reader.limit([=](uint8_t kind) { return mostBytes(static_cast<Kind>(kind), ranks); });
        std::array<unsigned char, kFrameHeaderBytes> head = {'T', 'f', 1, static_cast<unsigned char>(type)};
        const auto length = static_cast<uint32_t>(bytes);
        std::memcpy(head.data() + 4, &length, sizeof length);
        ASSERT_EQ(::send(theirs.get(), head.data(), head.size(), 0), ssize_t(head.size()));
        Frame frame;
        const auto status = reader.read(ours.get(), frame);
        EXPECT_EQ(status == FrameReader::Status::kBroken, bytes > most) << type << " of " << bytes;
      }
    }
}

TEST(FramesOfAKind, HoldWhatIsHonest) {
  constexpr int kRanks = 64;
  const std::string longText(1 << 20, 'x');
  Hello hello;
  hello.who.host = std::string(255, 'h');
  hello.who.endpoint = {1, {}, std::string(107, 'u'), std::vector<Address>(256)};
  hello.agreement.assign(20, {std::string(100, 'n'), std::string(500, 'v')});
  const auto expectFits = [](Kind kind, const Bytes& payload) {
    EXPECT_LE(payload.size(), mostBytes(kind, kRanks)) << static_cast<int>(kind);
  };
  expectFits(Kind::kHello, encode(hello));
  expectFits(Kind::kPlace, encode(Place{1, Bytes(kParcelBytes), hello.who}));
  expectFits(Kind::kDigest, Bytes(sizeof(Digest)));
  expectFits(Kind::kRefuse, encode(Refusal{ErrorCode::kRemote, longText}));
  expectFits(Kind::kFailure, encode(Failure{1, Stop::kError, ErrorCode::kRemote, longText}));
  expectFits(Kind::kShrinkWait, encodeWords(longText));
  expectFits(Kind::kShrinkGaveUp, encode(Refusal{ErrorCode::kRemote, longText}));
  expectFits(Kind::kShrinkTried, encode(ShrinkTried{1, Refusal{ErrorCode::kRemote, longText}}));
  expectFits(Kind::kStream, encode(StreamHello{}));
  expectFits(Kind::kShrinkCall, encode(ShrinkCall{0, 0, 0, 1, longText, longText}));
  expectFits(Kind::kShrinkProbe, encode(ShrinkCall{0, 0, 0, 1, longText, longText}));
  expectFits(Kind::kShrinkDiffer, encode(ShrinkDiffer{1, longText}));
  expectFits(Kind::kShrinkTry, encode(ShrinkTry{{}, Bytes(kParcelBytes), std::vector<int>(kRanks)}));
  expectFits(Kind::kMail, encode(Mail{0, 1, 2, MailUse::kMailbox, Bytes(kMostMailBytes)}));
  Gathering all(0, 1);
  all.addOwn(0, Bytes(kMostShareBytes));
  EXPECT_LE(kRanks * all.take(0)->size() + 12, mostBytes(Kind::kGatherUp, kRanks));
}

TEST(FramesOfAKind, ComeNoMoreAfterABrokenOne) {
  const auto [ours, theirs] = streams();
  FrameReader reader(100);
  FrameQueue queue;
  Frame frame;
  ASSERT_EQ(::send(theirs.get(), "GET / HT", 8, 0), 8);
  ASSERT_EQ(reader.read(ours.get(), frame), FrameReader::Status::kBroken);
  const std::string why = reader.error();
  queue.push(1, std::make_shared<const Bytes>(Bytes(10)));
  ASSERT_TRUE(queue.flush(theirs.get()));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(reader.read(ours.get(), frame), FrameReader::Status::kBroken);
  EXPECT_EQ(reader.error(), why);
}

TEST(FramesThatWait, AreCountedUntilTheyAreGone) {
  const auto [ours, theirs] = streams();
  FrameQueue queue;
  const auto payload = std::make_shared<const Bytes>(Bytes(1 << 20));
  for (size_t i = 1; i <= 3; ++i) {
    queue.push(1, payload);
    EXPECT_GE(queue.bytes(), i * payload->size());
  }
  FrameReader reader;
  Frame frame;
  while (!queue.empty()) {
    ASSERT_TRUE(queue.flush(ours.get()));
    reader.read(theirs.get(), frame);
  }
  EXPECT_EQ(queue.bytes(), 0u);
  queue.push(1, std::make_shared<const Bytes>());
  EXPECT_GT(queue.bytes(), kFrameHeaderBytes) << "also one of nothing takes memory";
  queue.push(1, payload);
  queue.drop();
  EXPECT_EQ(payload.use_count(), 1);
  queue.push(1, payload);
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_FALSE(queue.drained());
}

TEST(FramesOfAKind, AreNotSentWithoutTheKeyThatSealsThem) {
  const auto [ours, theirs] = streams();
  Cipher cipher(CipherKind::kXChaCha20Poly1305, CipherKey{});
  const Cipher elsewhere = std::move(cipher);
  FrameQueue queue;
  queue.seal(std::move(cipher));
  for (int i = 0; i < 2; ++i) {
    queue.push(1, std::make_shared<const Bytes>(Bytes(10)));
    EXPECT_FALSE(queue.flush(ours.get()));
    EXPECT_FALSE(queue.drained());
  }
  char byte = 0;
  EXPECT_EQ(::recv(theirs.get(), &byte, 1, MSG_DONTWAIT), -1);
}

// --- mail and streams that nobody takes ---

TEST(DeskOfARank, TakesSoManyMailsOfEach) {
  Mailbox mailbox;
  for (size_t i = 0; i < Mailbox::kMostMails; ++i) ASSERT_TRUE(mailbox.deliver(3, i, Bytes(1)));
  EXPECT_FALSE(mailbox.deliver(3, 1, Bytes(1)));
  EXPECT_TRUE(mailbox.deliver(4, 1, Bytes(1))) << "the others are not held up";
  EXPECT_TRUE(mailbox.poll(3, 7));
  EXPECT_TRUE(mailbox.deliver(3, 1, Bytes(1)));
  EXPECT_FALSE(mailbox.deliver(3, 1, Bytes(1)));
}

TEST(DeskOfARank, TakesSoManyBytesOfEach) {
  Mailbox mailbox;
  for (size_t held = 0; held < Mailbox::kMostMailboxBytes; held += kMostMailBytes)
    ASSERT_TRUE(mailbox.deliver(3, 1, Bytes(kMostMailBytes)));
  EXPECT_FALSE(mailbox.deliver(3, 2, Bytes(1)));
  EXPECT_TRUE(mailbox.poll(3, 1));
  EXPECT_TRUE(mailbox.deliver(3, 2, Bytes(kMostMailBytes)));
}

TEST(DeskOfARank, KeepsSoManyStreamsOfEach) {
  Mailbox mailbox;
  for (size_t i = 0; i < Mailbox::mostStreams(); ++i) ASSERT_TRUE(mailbox.park(3, i, StreamKind::kTcp, {}));
  EXPECT_FALSE(mailbox.park(3, 9, StreamKind::kTcp, {}));
  EXPECT_TRUE(mailbox.park(4, 9, StreamKind::kTcp, {}));
  mailbox.wantStream(3, 5, StreamKind::kTcp);
  EXPECT_TRUE(mailbox.pollStream(3, 5));
  EXPECT_TRUE(mailbox.park(3, 9, StreamKind::kTcp, {}));
}

TEST(DeskOfARank, KeepsFewerStreamsWhereDescriptorsAreFew) {
  constexpr size_t kFiles = 200;
  const tutti::test::FewFiles few(kFiles);
  Mailbox mailbox;
  size_t kept = 0;
  while (kept < Mailbox::kMostStreams && mailbox.park(3, kept, StreamKind::kTcp, {})) ++kept;
  EXPECT_EQ(kept, kFiles / 4);
}

// Over a Unix socket, a caller may give out any rank of its user's as its own.
TEST(DeskOfARank, KeepsSoManyStreamsOfAllTogether) {
  constexpr size_t kFiles = 200;
  const tutti::test::FewFiles few(kFiles);
  Mailbox mailbox;
  size_t kept = 0;
  for (int rank = 0; rank < 10; ++rank)
    for (uint64_t key = 0; key < 30; ++key) kept += mailbox.park(rank, key, StreamKind::kUnix, {}) ? 1 : 0;
  mailbox.wantStream(0, 7, StreamKind::kUnix);
  const bool taken = mailbox.pollStream(0, 7).has_value(), fits = mailbox.park(9, 7, StreamKind::kUnix, {});
  const bool another = mailbox.park(8, 7, StreamKind::kUnix, {}), proved = mailbox.park(8, 7, StreamKind::kTcp, {});
  EXPECT_EQ(kept, kFiles / 2);
  EXPECT_TRUE(taken && fits);
  EXPECT_FALSE(another);
  EXPECT_TRUE(proved) << "over TCP it is the rank that it says it is";
}

TEST(DeskOfARank, KeepsSoMuchBadNewsOfEach) {
  Mailbox mailbox;
  for (uint64_t key = 0; key < 3 * Mailbox::kMostStreams; ++key) mailbox.noStream(3, key, StreamKind::kTcp, "no");
  const auto hears = [&](uint64_t key) {
    mailbox.wantStream(3, key, StreamKind::kTcp);
    try {
      return mailbox.pollStream(3, key).has_value();
    } catch (const Error&) {
      return true;
    }
  };
  EXPECT_TRUE(hears(Mailbox::kMostStreams - 1));
  EXPECT_FALSE(hears(Mailbox::kMostStreams));
  mailbox.noStream(3, Mailbox::kMostStreams, StreamKind::kTcp, "no");
  EXPECT_TRUE(hears(Mailbox::kMostStreams));
}

// What the child that is rank 1 hands in of these ranks.
Bytes shareOf(const std::vector<int>& ranks) {
  Writer out;
  for (const int rank : ranks) out.value<int32_t>(rank).block(Bytes(1));
  return out.take();
}

TEST(Gatherings, OfAChildAreSoManyAtOnce) {
  Gathering gathering(0, 2);
  const auto share = [&](uint64_t sequence) {
    gathering.addChild(sequence, Gathering::Source::kFirstChild, shareOf({1}));
  };
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) share(sequence);
  EXPECT_THROW(share(5), Error);
  gathering.addOwn(1, {});
  EXPECT_TRUE(gathering.take(1));
  share(5);
}

TEST(Gatherings, OfOneChildKeepNoOtherOut) {
  Gathering gathering(0, 3);
  for (uint64_t invented = 100; invented < 104; ++invented)
    gathering.addChild(invented, Gathering::Source::kFirstChild, shareOf({1}));
  EXPECT_NO_THROW(gathering.addChild(1, Gathering::Source::kSecondChild, shareOf({2})));
  EXPECT_THROW(gathering.addChild(1, Gathering::Source::kFirstChild, shareOf({1})), Error);
}

TEST(Gatherings, OfAChildHaveItsSubtreeAndNoOther) {
  Gathering gathering(0, 6);
  const std::vector<std::vector<int>> wrong = {
      {},        {1, 3},       {1, 3, 3},  {1, 3, 4, 4}, {1, 3, 2},
      {1, 3, 5}, {0, 1, 3, 4}, {1, 3, -1}, {1, 3, 6},    {1, 3, std::numeric_limits<int>::min()}};
  for (const auto& ranks : wrong)
    EXPECT_THROW(gathering.addChild(1, Gathering::Source::kFirstChild, shareOf(ranks)), Error)
        << testing::PrintToString(ranks);
  gathering.addChild(1, Gathering::Source::kFirstChild, shareOf({4, 1, 3}));
  gathering.addChild(1, Gathering::Source::kSecondChild, shareOf({2, 5}));
  gathering.addOwn(1, Bytes(1));
  EXPECT_EQ(Gathering::toTable(*gathering.take(1), 6).size(), 6u);
}

// --- what neighbours in the tree say of others ---

using fuzz::Hostile;
using fuzz::World;

// Rank 1 of 5, which has joined; and the lines of its neighbours.
class Surrounded : public testing::Test {
 protected:
  Surrounded() { world_.letCome(World::Stage::kJoined); }
  Hostile& parent() { return world_.lines()[1]; }
  Hostile& child(int rank) { return world_.lines()[static_cast<size_t>(rank - 1)]; }
  Mailbox& mailbox() { return world_.member().mailbox(); }
  template <class Look>
  auto await(Look look) {
    const auto deadline = Deadline::in(tutti::test::longWait());
    for (;; std::this_thread::sleep_for(std::chrono::microseconds(100))) {
      auto found = look();
      if (found || deadline.passed()) return found;
    }
  }
  std::optional<Failure> awaitFailure() {
    return await([this] { return mailbox().failure(); });
  }

  World world_{1, 5};
};

Bytes mailOf(int from) { return encode(Mail{from, 1, 7, MailUse::kMailbox, Bytes(1)}); }

TEST_F(Surrounded, HasMailOfWhoIsOnThatSide) {
  parent().say(Kind::kMail, mailOf(0));
  parent().say(Kind::kMail, mailOf(2));
  child(3).say(Kind::kMail, mailOf(3));
  child(4).say(Kind::kMail, mailOf(4));
  for (const int from : {0, 2, 3, 4}) EXPECT_TRUE(await([&] { return mailbox().poll(from, 7); })) << from;
  EXPECT_FALSE(mailbox().failure());
}

TEST_F(Surrounded, RefusesAChildsMailOfAnother) {
  child(3).say(Kind::kMail, mailOf(4));
  const auto failure = awaitFailure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 3);
  EXPECT_NE(failure->text.find("a mail from rank 4"), std::string::npos) << failure->text;
  EXPECT_THROW(mailbox().poll(4, 7), Error) << "nothing has come of rank 4";
}

TEST_F(Surrounded, RefusesTheParentsMailOfThoseBelow) {
  parent().say(Kind::kMail, mailOf(3));
  const auto failure = awaitFailure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 0);
}

TEST_F(Surrounded, RefusesMailOfItself) {
  child(3).say(Kind::kMail, mailOf(1));
  const auto failure = awaitFailure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 3);
}

class FailureOf : public Surrounded, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(NoRank, FailureOf,
                         testing::Values(std::numeric_limits<int>::min(), -2, 5, std::numeric_limits<int>::max()));

TEST_P(FailureOf, IsRefused) {
  child(3).say(Kind::kFailure, encode(Failure{GetParam(), Stop::kSilence, ErrorCode::kRemote, "gone"}));
  const auto failure = awaitFailure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 3);
  EXPECT_NE(failure->text.find("cannot be understood"), std::string::npos) << failure->text;
}

TEST_F(Surrounded, HearsOfAFailureThatIsOfNoRank) {
  child(3).say(Kind::kFailure, encode(Failure{-1, Stop::kError, ErrorCode::kRemote, "the power"}));
  const auto failure = awaitFailure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->text, "the power");
}

// A neighbour that reads nothing: what it is sent is kept up to a bound, and then it is given up.
TEST_F(Surrounded, KeepsSoMuchForWhoDoesNotTakeIt) {
  const Bytes mail = encode(Mail{0, 3, 7, MailUse::kMailbox, Bytes(kMostMailBytes)});
  parent().flood(Kind::kMail, mail, static_cast<int>(mostQueued(5) / kMostMailBytes) + 4, world_.running());
  const auto failure = awaitFailure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 3);
  EXPECT_EQ(failure->stop, Stop::kSilence);
  EXPECT_NE(failure->text.find("rank 3 (host n3, pid 1003) does not take what it is sent"), std::string::npos)
      << failure->text;
  const auto told = child(4).hear(Kind::kFailure);
  ASSERT_TRUE(told);
  EXPECT_EQ(decodeFailure(told->payload).rank, 3);
}

TEST_F(Surrounded, KeepsLessForWhoTakesItLate) {
  const Bytes mail = encode(Mail{0, 3, 7, MailUse::kMailbox, Bytes(kMostMailBytes)});
  constexpr int kMails = 60;
  parent().flood(Kind::kMail, mail, kMails, world_.running());
  for (int i = 0; i < kMails; ++i) ASSERT_TRUE(child(3).hear(Kind::kMail)) << i;
  EXPECT_FALSE(mailbox().failure());
}

TEST_F(Surrounded, AnswersProbesOverOneLineOfARankAtOnce) {
  constexpr size_t kProbes = 20;
  std::vector<Hostile> lines;
  const size_t before = test::openFiles();
  for (size_t i = 0; i < kProbes; ++i) {
    lines.push_back(world_.call(2));
    lines.back().say(Kind::kShrinkProbe, encode(ShrinkCall{2, 0, 0, 0, {}, {}}));
    ASSERT_TRUE(lines.back().hear(Kind::kShrinkWait)) << i;
  }
  EXPECT_LE(test::openFiles(), before + kProbes + 1) << "this end of each, and the other of the last";
}

TEST_F(Surrounded, ReadsATableBeforeItIsPassedOn) {
  ASSERT_TRUE(child(3).hear(Kind::kGatherDown)) << "that of joining";
  parent().say(Kind::kGatherDown, Writer().value<uint64_t>(1).value<uint8_t>(0).take());
  const auto failure = awaitFailure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 0);
  const auto next = await([&] { return child(3).heard(); });
  ASSERT_TRUE(next);
  EXPECT_EQ(static_cast<Kind>(next->type), Kind::kFailure);
}

TEST_F(Surrounded, LogsFewOfThoseWhoSayWhatDoesNotBelongHere) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 20; ++i) {
    Hostile line = world_.call(2);
    line.say(Kind::kGoodbye, {});
    EXPECT_FALSE(line.hear(Kind::kGoodbye)) << "it is hung up on";
  }
  const std::string log = testing::internal::GetCapturedStderr();
  size_t lines = 0;
  for (size_t at = 0; (at = log.find("a first frame of type", at)) != std::string::npos; ++at) ++lines;
  EXPECT_GE(lines, 1u);
  EXPECT_LE(lines, 5u) << log;
}

// --- shrink ---

// Rank 1, whose owner has called shrink(), and rank 0, which leads it.
class Led : public Surrounded {
 protected:
  Led() {
    JoinRequest like;
    like.deadline = Deadline::in(3 * tutti::test::longWait());
    like.heartbeat = std::chrono::milliseconds(0);
    owner_ = std::thread([this, like] {
      try {
        result_ = world_.member().shrink(like, {}, {});
      } catch (const Error& e) {
        error_ = e.what();
      }
    });
    auto line = world_.answer(0, Deadline::in(tutti::test::longWait()));
    if (line) leader_.emplace(std::move(*line));
  }
  ~Led() override {
    if (result_) result_->leaveLater();
    if (owner_.joinable()) owner_.join();
    if (root_) root_->halt();
  }
  // A new plane of rank 1 alone.
  ShrinkTry proposalAt(const RootPlace& place) const {
    ShrinkTry proposal;
    proposal.survivors = {1};
    proposal.id.job = place.id.job;
    const auto& member = world_.who(1).endpoint.key;
    proposal.parcel = sealFor(member, World::keyOf(0), place.id.job, place.id.secret);
    return proposal;
  }
  void leadThrough() {
    ASSERT_TRUE(leader_ && leader_->hear(Kind::kShrinkCall));
    RootPlace place = anyRootPlace();
    place.tcp = false;
    const ShrinkTry proposal = proposalAt(place);
    place.id = world_.member().childId(place.id);
    root_ = startRoot(place, {}, Deadline::in(tutti::test::longWait()));
    leader_->say(Kind::kShrinkTry, encode(proposal));
    ASSERT_TRUE(leader_->hear(Kind::kShrinkTried));
    leader_->say(Kind::kShrinkCommit, Writer().value(place.id.job).take());
    ASSERT_TRUE(leader_->hear(Kind::kShrinkAck));
    leader_->say(Kind::kShrinkDone, {});
    owner_.join();
    ASSERT_TRUE(result_) << error_;
  }

  std::optional<Hostile> leader_;
  std::thread owner_;
  std::shared_ptr<ControlNode> result_;
  std::string error_;
  std::shared_ptr<Root> root_;
};

TEST_F(Led, AnswersLateCallsOverOneLineOfARankAtOnce) {
  leadThrough();
  if (HasFatalFailure()) return;
  constexpr size_t kCalls = 20;
  std::vector<Hostile> lines;
  const size_t before = test::openFiles();
  for (size_t i = 0; i < kCalls; ++i) {
    lines.push_back(world_.call(2));
    lines.back().say(Kind::kShrinkCall, encode(ShrinkCall{2, 0, 0, 0, {}, {}}));
    ASSERT_TRUE(lines.back().hear(Kind::kShrinkCommit)) << i;
  }
  EXPECT_LE(test::openFiles(), before + kCalls + 1) << "this end of each, and the other of the last";
}

size_t threadsHere() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

UniqueFd callerAt(const UniqueFd& door, std::chrono::milliseconds wait) {
  pollfd one{door.get(), POLLIN, 0};
  return UniqueFd(::poll(&one, 1, static_cast<int>(wait.count())) > 0 ? ::accept(door.get(), nullptr, nullptr) : -1);
}

// The leader knows of it. A call to the root of each plane that is dropped, for as long as nobody answers there, would
// be a thread and descriptors for each that a leader proposes.
TEST_F(Led, CallsNoRootForAPlaneThatItDrops) {
  ASSERT_TRUE(leader_ && leader_->hear(Kind::kShrinkCall));
  const size_t threads = threadsHere();
  const RootPlace place = anyRootPlace();
  const UniqueFd door = listenUnix(rootUnixName(place.id.job));
  leader_->say(Kind::kShrinkTry, encode(proposalAt(place)));
  const UniqueFd joining = callerAt(door, tutti::test::longWait());
  ASSERT_TRUE(joining);
  leader_->say(Kind::kShrinkAgain, {});
  EXPECT_TRUE(await([&] { return threadsHere() <= threads; }));
  EXPECT_FALSE(callerAt(door, {})) << "another call than that of the plane itself";
  leader_->say(Kind::kShrinkEnd, encode(Refusal{ErrorCode::kRemote, "enough"}));
}

// Once a failure is known, a neighbour's word that others are silent as well leaves nobody out.
TEST_F(Surrounded, LeavesNobodyOutAfterTheFirstFailureForASingleWord) {
  child(3).say(Kind::kFailure, encode(Failure{-1, Stop::kError, ErrorCode::kRemote, "the power"}));
  ASSERT_TRUE(awaitFailure());
  child(3).say(Kind::kFailure, encode(Failure{4, Stop::kSilence, ErrorCode::kRemote, "silent"}));
  child(3).say(Kind::kMail, encode(Mail{3, 1, 7, MailUse::kQuestion, Bytes(1)}));
  ASSERT_TRUE(child(3).hear(Kind::kMail)) << "the answer: both have been heard";
  Hostile line = world_.call(4);
  line.say(Kind::kShrinkProbe, encode(ShrinkCall{4, 0, 0, 0, {}, {}}));
  EXPECT_TRUE(line.hear(Kind::kShrinkWait));
}

TEST(AChild, WithANumberThatIsNoRankIsHungUpOn) {
  World world(1, 5);
  world.letCome(World::Stage::kPlaced);
  for (const int rank : {std::numeric_limits<int>::min(), -1, 0, 1, 2, 5, std::numeric_limits<int>::max()}) {
    Hostile line = world.call(3);
    RankAddress who = world.who(3);
    who.rank = rank;
    line.say(Kind::kTree, encode(Hello{who, 5, 0, 0, {}}));
    EXPECT_FALSE(line.hear(Kind::kGatherDown)) << rank;
  }
}

}  // namespace
}  // namespace tutti::control

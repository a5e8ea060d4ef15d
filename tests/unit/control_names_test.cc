// No member of a job speaks in another's name, where a network is between them.
#include <poll.h>
#include <sys/socket.h>

#include "control/control_node.h"
#include "control_ranks.h"
#include "join/root.h"
#include "net/frame.h"
#include "net/socket.h"
#include "process/background_threads.h"

namespace tutti::control::test {
namespace {

// Three ranks, of which rank 0 is bad: it calls rank 1 by itself, and says what it likes.
class Names : public testing::Test {
 protected:
  void SetUp() override {
    const UniqueId id = openRoot({}, soon());
    for (int r = 0; r < 3; ++r) {
      members_.push_back(std::make_shared<ControlNode>(requestFor(id, r, 3)));
      BackgroundThreads::instance().start(members_.back());
    }
    for (const auto& member : members_) ASSERT_TRUE(member->mailbox().awaitJoined(soon()));
  }
  void TearDown() override {
    for (const auto& member : members_) member->leave();
  }

  UniqueFd callRank1() const {
    const Dial::Target target = members_[0]->targetFor(1);
    UniqueFd fd = dialTcp(target.addresses.at(0));
    Handshake hello(Handshake::Role::kClient, target.context);
    for (pollfd ready{fd.get(), POLLOUT, 0};; ready.events = POLLIN) {
      EXPECT_EQ(::poll(&ready, 1, 20000), 1);
      const auto status = hello.advance(fd.get());
      EXPECT_NE(status, Handshake::Status::kFailed) << hello.error();
      if (status != Handshake::Status::kWantsRead) return fd;
    }
  }
  static void say(const UniqueFd& fd, Kind kind, Bytes payload) {
    FrameQueue out;
    out.push(static_cast<uint8_t>(kind), std::make_shared<const Bytes>(std::move(payload)));
    EXPECT_TRUE(out.flush(fd.get()) && out.empty());
  }
  static bool hangsUp(const UniqueFd& fd) {
    pollfd ready{fd.get(), POLLIN, 0};
    char waste;
    return ::poll(&ready, 1, 20000) == 1 && ::recv(fd.get(), &waste, 1, 0) <= 0;
  }

  std::vector<std::shared_ptr<ControlNode>> members_;
};

TEST_F(Names, AreTheCallersOwnOnStreams) {
  for (const int from : {0, 2}) ASSERT_TRUE(members_[1]->mailbox().wantStream(from, 9, StreamKind::kTcp));
  const UniqueFd own = callRank1();
  say(own, Kind::kStream, encode(StreamHello{0, 9, StreamKind::kTcp}));
  const UniqueFd others = callRank1();
  say(others, Kind::kStream, encode(StreamHello{2, 9, StreamKind::kTcp}));
  EXPECT_TRUE(hangsUp(others));
  const Deadline deadline = soon();
  std::optional<SecureSocket> stream;
  while (!stream && !deadline.passed()) stream = members_[1]->mailbox().pollStream(0, 9);
  EXPECT_TRUE(stream.has_value());
  EXPECT_FALSE(members_[1]->mailbox().pollStream(2, 9).has_value());
}

TEST_F(Names, AreTheCallersOwnInShrink) {
  for (const Kind kind : {Kind::kShrinkCall, Kind::kShrinkProbe}) {
    const UniqueFd others = callRank1();
    say(others, kind, encode(ShrinkCall{2, 0, 0, 0, {}, {}}));
    EXPECT_TRUE(hangsUp(others));
  }
}

TEST_F(Names, AreOfNobodyElseAtTheDoorOfARank) {
  Dial::Target target = members_[0]->targetFor(1);
  target.context.peer = members_[2]->key().open;  // as one who has put himself in rank 1's place would show
  const UniqueFd fd = dialTcp(target.addresses.at(0));
  Handshake hello(Handshake::Role::kClient, target.context);
  for (pollfd ready{fd.get(), POLLOUT, 0};; ready.events = POLLIN) {
    ASSERT_EQ(::poll(&ready, 1, 20000), 1);
    const auto status = hello.advance(fd.get());
    ASSERT_NE(status, Handshake::Status::kDone);
    if (status == Handshake::Status::kFailed) break;
  }
}

}  // namespace
}  // namespace tutti::control::test

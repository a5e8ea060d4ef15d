// Unix sockets serve their own user only, at both ends, and what comes over TCP needs a secret that other users do not
// have. Needs root, to be another user.
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/keeper.h"
#include "control/member.h"
#include "control/root.h"
#include "control/socket.h"
#include "control_ranks.h"

namespace tutti::control::test {
namespace {

constexpr uid_t kNobody = 65534;

// Runs `body` as another user in a child, whose exit status it gives. Between fork() and the end only system calls.
template <class Body>
pid_t asNobody(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::syscall(SYS_setuid, kNobody) != 0) ::_exit(99);
    ::_exit(body());
  }
  return pid;
}

int statusOf(pid_t pid) {
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// 0: the listener hung up without a word.
int callAndListen(const std::string& name) {
  const UniqueFd fd = dialUnix(name);
  if (!fd) return 1;
  pollfd ready{fd.get(), POLLIN, 0};
  if (::poll(&ready, 1, 3000) != 1) return 2;
  char waste;
  return ::recv(fd.get(), &waste, 1, 0) <= 0 ? 0 : 3;
}

TEST(Users, AnotherUsersCallIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const UniqueId id = openRoot({}, soon());
  const std::string name = rootUnixName(id.job);
  EXPECT_EQ(statusOf(asNobody([&] { return callAndListen(name); })), 0);
  EXPECT_EQ(callAndListen(name), 2) << "the own user is waited for";
}

// Someone else sits at the name of a root that is not there.
TEST(Users, AnotherUsersListenerIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  UniqueId id = anyRootPlace().id;
  const std::string name = rootUnixName(id.job);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t pid = asNobody([&] {
    const UniqueFd fd = listenUnix(name);
    if (!fd || ::write(ready[1], "x", 1) != 1) return 1;
    ::pause();
    return 0;
  });
  char waste;
  EXPECT_EQ(::read(ready[0], &waste, 1), 1);
  const Thrown thrown =
      thrownBy([&] { Plane::join(requestFor(id, 1, 2, Deadline::in(std::chrono::milliseconds(200)))); });
  EXPECT_NE(thrown.text.find("another user"), std::string::npos) << thrown.text;
  ::kill(pid, SIGKILL);
  statusOf(pid);
  ::close(ready[0]);
  ::close(ready[1]);
}

// Two ranks of one host for whose job no secret was given.
class WithoutASecret : public testing::Test {
 protected:
  void SetUp() override {
    RootPlace place;
    place.id.job = randomNumber();
    place.tcp = false;
    const UniqueId id = openRootAt(place, {}, soon());
    for (int r = 0; r < 2; ++r) {
      members_.push_back(std::make_shared<Member>(requestFor(id, r, 2)));
      Keeper::instance().start(members_.back());
    }
    for (const auto& member : members_) ASSERT_TRUE(member->desk().awaitJoined(soon()));
  }
  void TearDown() override {
    for (const auto& member : members_) member->leave();
  }

  // What everybody on the host can know of rank 1: where it listens, and how the others name it.
  HandshakeContext guessed() const {
    HandshakeContext context = members_[0]->targetFor(1).context;
    context.secret = {};
    return context;
  }
  Address doorOfRank1() const { return members_[0]->targetFor(1).addresses.at(0); }

  // 0: hung up on; 1: nobody is there; 2: let in. Allocates nothing.
  static int joinAt(const Address& door, const HandshakeContext& context) {
    const UniqueFd fd = dialTcp(door);
    pollfd ready{fd.get(), POLLOUT, 0};
    if (!fd || ::poll(&ready, 1, 20000) != 1) return 1;
    Handshake hello(Handshake::Role::kClient, context);
    ready.events = POLLIN;
    for (;;) {
      const auto status = hello.advance(fd.get());
      if (status == Handshake::Status::kDone) return 2;
      if (status == Handshake::Status::kFailed) return 0;
      if (::poll(&ready, 1, 20000) != 1) return 3;
    }
  }

  std::vector<std::shared_ptr<Member>> members_;
};

TEST_F(WithoutASecret, TheRanksHaveOneThatWasDrawn) {
  EXPECT_NE(members_[0]->secret(), Secret{});
  EXPECT_EQ(members_[0]->secret(), members_[1]->secret());
  EXPECT_EQ(joinAt(doorOfRank1(), members_[0]->targetFor(1).context), 2);
}

TEST_F(WithoutASecret, NobodyGetsInOverTcpWithAnEmptyOne) { EXPECT_EQ(joinAt(doorOfRank1(), guessed()), 0); }

TEST_F(WithoutASecret, AnotherUserDoesNotGetInOverTcp) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const Address door = doorOfRank1();
  const HandshakeContext context = guessed();
  EXPECT_EQ(statusOf(asNobody([&] { return joinAt(door, context); })), 0);
}

// Where strangers may come to the root, they come too late for the ranks.
TEST(WithoutASecretAtAnAddress, TheRanksHaveOneThatWasDrawn) {
  Network network;
  network.unixSockets = false;
  RootPlace place;
  place.id.job = randomNumber();
  const UniqueId id = openRootAt(place, network, soon());
  std::vector<std::shared_ptr<Member>> members;
  for (int r = 0; r < 3; ++r) {
    members.push_back(std::make_shared<Member>(requestFor(id, r, 3, soon(), network)));
    Keeper::instance().start(members.back());
  }
  for (const auto& member : members) {
    EXPECT_TRUE(member->desk().awaitJoined(soon()));
    EXPECT_NE(member->secret(), Secret{});
    EXPECT_EQ(member->secret(), members[0]->secret());
  }
  for (const auto& member : members) member->leave();
}

// The secrets of a communicator's children follow from its own, and their roots are called over TCP as well.
TEST_F(WithoutASecret, ChildrenHaveOneThatFollowsFromIt) {
  UniqueId told = anyRootPlace().id;
  EXPECT_NE(inherit(told, members_[0]->secret()).secret, inherit(told, Secret{}).secret);
}

}  // namespace
}  // namespace tutti::control::test

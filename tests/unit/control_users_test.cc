// Unix sockets serve their own user only, at both ends, and what comes over TCP needs a secret that other users do not
// have. Needs root, to be another user.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "base/random.h"
#include "control/control_node.h"
#include "control_ranks.h"
#include "job/root_name.h"
#include "join/root.h"
#include "launch/rendezvous.h"
#include "net/handshake.h"
#include "net/socket.h"
#include "process/background_threads.h"
#include "process/user_folder.h"
#include "support/other_user.h"
#include "wire/listener.h"

namespace tutti::control::test {
namespace {

using tutti::test::asNobody;
using tutti::test::asUser;
using tutti::test::statusOf;

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

// Sits at a name, as another user, while it lives.
class Squatter {
 public:
  explicit Squatter(const std::string& name) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = asNobody([&] {
      const UniqueFd fd = listenUnix(name);
      if (!fd || ::write(ready[1], "x", 1) != 1) return 1;
      ::pause();
      return 0;
    });
    ::close(ready[1]);
    char waste;
    EXPECT_EQ(::read(ready[0], &waste, 1), 1) << "another user could not take the name";
    ::close(ready[0]);
  }
  ~Squatter() {
    ::kill(pid_, SIGKILL);
    statusOf(pid_);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

// Someone else sits at the name of a root that is not there.
TEST(Users, AnotherUsersListenerIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  UniqueId id = anyRootPlace().id;
  const Squatter squatter(rootUnixName(id.job));
  const Thrown thrown =
      thrownBy([&] { joinPlane(requestFor(id, 1, 2, Deadline::in(std::chrono::milliseconds(200)))); });
  EXPECT_NE(thrown.text.find("another user"), std::string::npos) << thrown.text;
}

// A rank of two that one host's launcher has started.
LaunchInfo onOneHost(int rank) {
  LaunchInfo launch;
  launch.rank = rank;
  launch.size = 2;
  launch.oneHost = true;
  launch.jobKey = "squatted " + std::to_string(::getpid());
  return launch;
}

// An abstract name that is taken, with nobody who listens.
UniqueFd boundTo(const std::string& name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  name.copy(at.sun_path + 1, sizeof at.sun_path - 1);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), bytes), 0);
  return fd;
}

// With a folder of the user's own, as userFolders() are.
class UsersOfAFolder : public testing::Test {
 protected:
  UsersOfAFolder() : folder(testing::TempDir() + "tutti-users-" + std::to_string(randomNumber())) {
    EXPECT_EQ(::mkdir(folder.c_str(), 0700), 0);
  }
  ~UsersOfAFolder() override { std::filesystem::remove_all(folder); }

  UniqueId placeOf(int rank) const {
    LaunchInfo launch = onOneHost(rank);
    launch.folders = {folder};
    return meetingPlace(launch, {}, soon());
  }
  // The names at which a root could be called while they met.
  std::vector<std::string> meet() const {
    std::vector<std::string> names;
    const UniqueId first = placeOf(0);
    names = {rootUnixName(first.job), rootNameIn(folder, first.job).value_or("none")};
    inThreads(2, [&](int rank) { joinPlane(requestFor(rank == 0 ? first : placeOf(rank), rank, 2)); });
    return names;
  }

  const std::string folder;
};

// The name that follows from what the launcher says is anyone's to work out.
TEST_F(UsersOfAFolder, MeetWhereAnotherUserHasTakenTheirName) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::string taken = rootUnixName(placeOf(1).job);
  const Squatter squatter(taken);
  testing::internal::CaptureStderr();
  meet();
  const std::string warned = testing::internal::GetCapturedStderr();
  EXPECT_NE(warned.find(fmt::format("process {} of user 65534 holds the name @{}", squatter.pid(), taken)),
            std::string::npos)
      << warned;
}

// While ranks meet, every user can read their names from the list of sockets: that is of no use for the next time.
TEST_F(UsersOfAFolder, MeetWhereAnotherUserHasTakenTheNamesOfTheRunBefore) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const auto names = meet();
  EXPECT_EQ(rootNameIn(folder, placeOf(1).job), std::nullopt);
  const Squatter one(names[0]), other(names[1]);
  EXPECT_NE(meet(), names);
}

// A name that is held, and at which nobody answers, is no other job of this user's.
TEST_F(UsersOfAFolder, MeetWhereWhoHoldsTheirNameDoesNotAnswer) {
  const UniqueFd holds = boundTo(rootUnixName(placeOf(1).job));
  testing::internal::CaptureStderr();
  meet();
  const std::string warned = testing::internal::GetCapturedStderr();
  EXPECT_NE(warned.find("a process that does not answer holds the name"), std::string::npos) << warned;
}

// Nor are ranks kept apart that have nothing but the name in common, as in containers: nobody has taken it.
TEST_F(UsersOfAFolder, MeetThoseWhoDoNotShareIt) {
  inThreads(2, [&](int rank) {
    const UniqueId id = rank == 0 ? placeOf(0) : meetingPlace(onOneHost(rank), {}, soon());
    EXPECT_EQ(id.folder.empty(), rank != 0);
    joinPlane(requestFor(id, rank, 2));
  });
}

// Where the ranks have no folder, they have no other name; the text says who holds it.
TEST(Users, WhoHoldsTheOnlyNameIsTold) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  RootPlace place = anyRootPlace();
  place.tcp = false;
  const Squatter squatter(rootUnixName(place.id.job));
  const Thrown thrown = thrownBy([&] { openRootAt(place, {}, soon()); });
  for (const std::string& word :
       {fmt::format("process {} of user 65534", squatter.pid()), std::string("TUTTI_JOB"), userFolders().back()})
    EXPECT_NE(thrown.text.find(word), std::string::npos) << thrown.text;
}

// Into a user namespace that maps nobody but this process, as `inside`.
bool becomeUnknownAs(const char* inside) {
  const std::string map = fmt::format("{} {} 1", inside, ::geteuid());
  if (::unshare(CLONE_NEWUSER) != 0) return false;
  const UniqueFd file(::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), map.data(), map.size()) == ssize_t(map.size());
}

// 0: it was told so.
int beToldToBeUnknownAs(const char* inside) {
  if (!becomeUnknownAs(inside)) return 77;
  LaunchInfo launch = onOneHost(1);
  const std::string text = thrownBy([&] { meetingPlace(launch, {}, soon()); }).text;
  launch.secret = "a secret";
  meetingPlace(launch, {}, soon());
  if (text.empty()) return 1;
  return text.find(fmt::format("runs as user {}, as which", inside)) != text.npos &&
                 text.find("TUTTI_SECRET") != text.npos
             ? 0
             : 2;
}

// Every user outside of it looks like that one.
TEST(Users, RanksThatCannotBeToldFromOtherUsersNeedASecret) {
  const int status = statusOf(asUser(::geteuid(), [] { return beToldToBeUnknownAs("65534"); }));
  if (status == 77) GTEST_SKIP() << "user namespaces may not be made";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(statusOf(asUser(::geteuid(), [] { return beToldToBeUnknownAs("1500"); })), 1) << "nobody else looks so";
}

// As a user whom nobody can tell from others. 0: the second listener at the name was refused.
int listenTwice(const std::string& name) {
  if (!becomeUnknownAs("65534")) return 77;
  const UniqueFd first = listenUnix(name);
  Reactor reactor;
  Listener::Request request;
  request.unixNames = {name, name + "-other"};
  request.tcp = false;
  const Thrown thrown = thrownBy([&] { Listener(reactor, request, {}); });
  return first && thrown.code == codeOf(ErrorCode::kSystem) ? 0 : 1;
}

// 0: the second root was refused where the first one listens.
int nameTwice(const std::string& folder, uint64_t job) {
  if (!becomeUnknownAs("65534")) return 77;
  const RootName first(folder, job);
  const UniqueFd listens = listenUnix(first.text());
  const Thrown thrown = thrownBy([&] { RootName(folder, job); });
  return listens && thrown.code == codeOf(ErrorCode::kSystem) ? 0 : 1;
}

// A suite of its own, so that the process that is forked has made no threads.
class UsersWhoLookAlike : public UsersOfAFolder {};

// Who looks like this user may be one: of two jobs of one user at one place, one gets it.
TEST_F(UsersWhoLookAlike, MeetOneJobAtAPlace) {
  const uint64_t job = randomNumber();
  const int named = statusOf(asUser(::geteuid(), [&] { return nameTwice(folder, job); }));
  const int listened = statusOf(asUser(::geteuid(), [&] { return listenTwice(rootUnixName(job)); }));
  if (named == 77 || listened == 77) GTEST_SKIP() << "user namespaces may not be made";
  EXPECT_EQ(named, 0);
  EXPECT_EQ(listened, 0);
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
      members_.push_back(std::make_shared<ControlNode>(requestFor(id, r, 2)));
      BackgroundThreads::instance().start(members_.back());
    }
    for (const auto& member : members_) ASSERT_TRUE(member->mailbox().awaitJoined(soon()));
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

  std::vector<std::shared_ptr<ControlNode>> members_;
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
  std::vector<std::shared_ptr<ControlNode>> members;
  for (int r = 0; r < 3; ++r) {
    members.push_back(std::make_shared<ControlNode>(requestFor(id, r, 3, soon(), network)));
    BackgroundThreads::instance().start(members.back());
  }
  for (const auto& member : members) {
    EXPECT_TRUE(member->mailbox().awaitJoined(soon()));
    EXPECT_NE(member->secret(), Secret{});
    EXPECT_EQ(member->secret(), members[0]->secret());
  }
  for (const auto& member : members) member->leave();
}

// Whoever stood between them as they met has heard all that their children's secrets are made of.
TEST(WithoutASecretAtAnAddress, ChildrenCannotEncryptEither) {
  RootPlace place;
  place.id.job = randomNumber();
  const UniqueId id = openRootAt(place, {}, soon());
  std::vector<std::shared_ptr<Plane>> planes(2);
  inThreads(2, [&](int r) { planes[size_t(r)] = joinPlane(requestFor(id, r, 2)); });
  const auto expectRefused = [](const Thrown& thrown) {
    EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage)) << thrown.text;
    EXPECT_NE(thrown.text.find("TUTTI_ENCRYPT=1 needs a secret"), std::string::npos) << thrown.text;
  };
  const Bytes told = planes[0]->openChildRoot({}, soon(), std::vector<int>{0, 1}).told;
  inThreads(2, [&](int r) {
    JoinRequest request = requestFor(planes[size_t(r)]->childId(told, 0, size_t(r)), r, 2);
    request.encrypt = true;
    expectRefused(thrownBy([&] { joinPlane(request); }));
    expectRefused(thrownBy([&] { planes[size_t(r)]->shrink(request); }));
  });
}

// The secrets of a communicator's children follow from its own, and their roots are called over TCP as well.
TEST_F(WithoutASecret, ChildrenHaveOneThatFollowsFromIt) {
  UniqueId told = anyRootPlace().id;
  EXPECT_NE(members_[0]->childId(told).secret, inherit(told, UniqueId{}).secret);
}

}  // namespace
}  // namespace tutti::control::test

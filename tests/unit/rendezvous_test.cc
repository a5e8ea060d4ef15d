#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "base/random.h"
#include "control_ranks.h"
#include "join/open_root.h"
#include "join/root.h"
#include "launch/rendezvous.h"
#include "net/network.h"
#include "net/socket.h"
#include "process/fd.h"
#include "process/private_file.h"
#include "support/patience.h"

namespace tutti::control::test {
namespace {

// The number of the communicator that they make.
uint64_t meetAndJoin(const LaunchInfo& pattern, int size) {
  std::vector<uint64_t> numbers(static_cast<size_t>(size));
  inThreads(size, [&](int r) {
    LaunchInfo launch = pattern;
    launch.rank = r;
    launch.size = size;
    const UniqueId id = meetingPlace(launch, {}, soon());
    const auto plane = joinPlane(requestFor(id, r, size));
    EXPECT_EQ(toText(plane->info(size - 1)), "card of " + std::to_string(size - 1));
    numbers[size_t(r)] = plane->id();
  });
  for (const uint64_t number : numbers) EXPECT_EQ(number, numbers[0]);
  return numbers[0];
}

TEST(MeetingPlace, RanksMeetAtAnAddressTwiceInARow) {
  LaunchInfo launch;
  launch.rootHost = "localhost";
  launch.rootPort = freePort();
  launch.secret = "a secret";
  const uint64_t first = meetAndJoin(launch, 4);
  EXPECT_NE(meetAndJoin(launch, 4), first);  // or the records of one would replace those of the other
}

TEST(MeetingPlace, RanksOfOneHostMeetAtAUnixSocket) {
  LaunchInfo launch;
  launch.oneHost = true;
  launch.jobKey = "job " + std::to_string(randomNumber());
  meetAndJoin(launch, 4);
}

// Two jobs of one rank each, with nothing that tells them apart, do not meet.
TEST(MeetingPlace, WhoIsAloneMeetsNobody) {
  LaunchInfo launch;
  launch.oneHost = true;
  const UniqueId one = meetingPlace(launch, {}, soon()), other = meetingPlace(launch, {}, soon());
  EXPECT_NE(one.job, other.job);
  meetAndJoin(launch, 1);
}

TEST(MeetingPlace, RanksOfOneHostNeedAnAddressWithoutUnixSockets) {
  Network network;
  network.unixSockets = false;
  LaunchInfo launch;
  launch.size = 2;
  launch.oneHost = true;
  const Thrown thrown = thrownBy([&] { meetingPlace(launch, network, soon()); });
  EXPECT_NE(thrown.text.find("TUTTI_ROOT"), std::string::npos) << thrown.text;
  launch.rootHost = "localhost";
  launch.rootPort = freePort();
  launch.rank = 0;
  const UniqueId id = meetingPlace(launch, network, soon());
  EXPECT_FALSE(id.addresses.empty());
}

TEST(MeetingPlace, AFolderIsNoIdFile) {
  LaunchInfo launch;
  launch.idFile = "/tmp";
  const Thrown thrown = thrownBy([&] { meetingPlace(launch, {}, soon()); });
  EXPECT_EQ(thrown.text, "TUTTI_ID_FILE=/tmp: it is a folder, not a regular file");
}

// Nobody would ever write to the pipe, and whoever reads the other could join.
TEST(MeetingPlace, AnIdFileThatIsNotToBeTrustedIsNotWaitedFor) {
  const std::string path = testing::TempDir() + "tutti-id-" + std::to_string(randomNumber());
  LaunchInfo launch;
  launch.idFile = path;
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  Thrown thrown = thrownBy([&] { meetingPlace(launch, {}, soon()); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage));
  EXPECT_EQ(thrown.text, fmt::format("TUTTI_ID_FILE={}: it is a pipe, not a regular file", path));
  std::remove(path.c_str());
  ASSERT_EQ(writePrivateFile(AT_FDCWD, path, "half an id"), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  thrown = thrownBy([&] { meetingPlace(launch, {}, soon()); });
  EXPECT_NE(thrown.text.find("its mode is 0644"), std::string::npos) << thrown.text;
  std::remove(path.c_str());
}

struct IdFileCase {
  const char* name;
  std::string content;
  const char* why;
};
void PrintTo(const IdFileCase& one, std::ostream* out) { *out << one.name; }

class IdFileThatIsNone : public testing::TestWithParam<IdFileCase> {};
INSTANTIATE_TEST_SUITE_P(
    Content, IdFileThatIsNone,
    testing::Values(IdFileCase{"words", "no id\n", "a unique id has 256 hex digits, this text has 5 characters"},
                    IdFileCase{"tooLong", std::string(258, 'a'), "256 hex digits, this text has 258 characters"},
                    IdFileCase{"stray", std::string(255, 'a') + "g", "a stray character near 254"},
                    IdFileCase{"noId", std::string(256, '0'), "not a unique id of this version of tutti"},
                    IdFileCase{"half", std::string(100, 'a'), "a unique id has 256 hex digits, this text has 100"}),
    [](const auto& given) { return given.param.name; });

// Or the test would hang, and not fail: with no deadline nothing else ends the wait.
TEST_P(IdFileThatIsNone, IsNotWaitedFor) {
  const std::string path = testing::TempDir() + "tutti-id-" + std::to_string(randomNumber());
  ASSERT_EQ(writePrivateFile(AT_FDCWD, path, GetParam().content), 0);
  LaunchInfo launch;
  launch.idFile = path;
  const Thrown thrown = thrownBy([&] { meetingPlace(launch, {}, Deadline::never()); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidArgument));
  for (const char* words : {"TUTTI_ID_FILE=", GetParam().why, "docs/launchers.md"})
    EXPECT_NE(thrown.text.find(words), std::string::npos) << thrown.text;
  std::remove(path.c_str());
}

// A shell makes it empty before the program runs, and a program may write it in pieces.
TEST(MeetingPlace, AnIdFileThatGrowsIsWaitedFor) {
  const std::string path = testing::TempDir() + "tutti-id-" + std::to_string(randomNumber()), hex = [] {
    UniqueId id;
    id.job = 7;
    return toHex(encode(id));
  }();
  std::thread writing([&] {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    for (size_t at = 0; at < hex.size(); at += 64) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_EQ(::write(file.get(), hex.data() + at, 64), 64);
    }
  });
  LaunchInfo launch;
  launch.idFile = path;
  EXPECT_EQ(meetingPlace(launch, {}, soon()).job, 7u);
  writing.join();
  std::remove(path.c_str());
}

TEST(MeetingPlace, AnIdFileThatDoesNotComeIsNamedWithTheDeadline) {
  LaunchInfo launch;
  launch.idFile = testing::TempDir() + "tutti-id-never";
  const Thrown thrown = thrownBy([&] {
    meetingPlace(launch, {}, {Deadline::in(std::chrono::milliseconds(10)), {}, 3});
  });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kTimeout));
  EXPECT_EQ(thrown.text, "TUTTI_ID_FILE=" + *launch.idFile +
                             ": no unique id came before the deadline of rank 3, TUTTI_JOIN_TIMEOUT_MS "
                             "(config.joinTimeoutMs) (it cannot be read: No such file or directory); docs/launchers.md "
                             "says who writes it, and how");
}

// As rank 1 of two, for whom everything that it waits for stays away.
void expectToStop(LaunchInfo launch) {
  launch.rank = 1;
  launch.size = 2;
  std::atomic<bool> cancelled{false};
  std::thread aborting([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    cancelled = true;
  });
  const Thrown thrown = thrownBy([&] { meetingPlace(launch, {}, {soon(), [&] { return cancelled.load(); }, 1}); });
  aborting.join();
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kRemote));
  EXPECT_EQ(thrown.text, "rank 1 stopped joining: it was aborted");
}

TEST(MeetingPlace, WhoLosesInterestWaitsForNothing) {
  LaunchInfo file, host, manager;
  file.idFile = testing::TempDir() + "tutti-id-never";
  expectToStop(file);
  host.rootHost = "no-such-host.invalid";
  host.rootPort = 4000;
  expectToStop(host);
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd silent(pair[0]), ours(pair[1]);
  manager.pmi = ours.get();
  expectToStop(manager);
}

TEST(MeetingPlace, AHostThatIsNotKnownIsAskedForUntilTheDeadline) {
  LaunchInfo launch;
  launch.rank = 1;
  launch.size = 2;
  launch.rootHost = "no-such-host.invalid";
  launch.rootPort = 4000;
  const Thrown thrown = thrownBy([&] { meetingPlace(launch, {}, Deadline::in(std::chrono::milliseconds(50))); });
  EXPECT_NE(thrown.text.find("cannot resolve no-such-host.invalid"), std::string::npos) << thrown.text;
}

// A rank of two whose launcher names an address, and that nobody else joins.
LaunchInfo aloneAt(int rank, const std::string& host, uint16_t port) {
  LaunchInfo launch;
  launch.rank = rank;
  launch.size = 2;
  launch.source = "TUTTI_RANK/TUTTI_SIZE/TUTTI_ROOT";
  launch.rootHost = host;
  launch.rootPort = port;
  launch.secret = "a secret";
  return launch;
}

std::string whyNot(const LaunchInfo& launch, int timeMs, const Network& network = {}) {
  const UniqueId id = meetingPlace(launch, network, soon());
  const Deadline deadline = Deadline::in(std::chrono::milliseconds(timeMs) * tutti::test::patience());
  return thrownBy([&] { joinPlane(requestFor(id, launch.rank, launch.size, deadline, network)); }).text;
}

// The first of so many that nobody listens at.
uint16_t portsInARow(int count) {
  Address any;
  any.v6 = true;
  for (;;) {
    const uint16_t first = any.port = freePort();
    int free = 0;
    while (free < count && first + free <= 0xffff && listenTcp(any, true))
      any.port = static_cast<uint16_t>(first + ++free);
    if (free == count) return first;
  }
}

void expectWords(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
}

TEST(Rendezvous, WhereNobodyAnswersTheTextSpeaksOfThePlaceAndOfNoId) {
  LaunchInfo launch = aloneAt(1, "127.0.0.1", freePort());
  const std::string at = fmt::format("at 127.0.0.1:{}", launch.rootPort);
  std::string text = whyNot(launch, 300);
  expectWords(text, {at, "rank 0", "TUTTI_ROOT, TUTTI_JOB"});
  EXPECT_EQ(text.find("unique id"), std::string::npos) << text;
  launch.oneHost = true;
  text = whyNot(launch, 300);
  expectWords(text,
              {"at a Unix socket of this host", "TUTTI_ROOT, TUTTI_JOB, TUTTI_UNIX_SOCKETS and user (this one: "});
  EXPECT_EQ(text.find("unique id"), std::string::npos) << text;
}

Network withUnixSockets(bool allowed) {
  Network network;
  network.unixSockets = allowed;
  return network;
}

// Its system takes calls, and the deadline comes before they are given up.
TEST(Rendezvous, WhereTheRootIsStoppedTheTextSaysThatSomebodyListens) {
  Address any;
  any.port = freePort();
  const UniqueFd held = listenTcp(any, false);
  ASSERT_TRUE(held);
  const std::string text = whyNot(aloneAt(1, "127.0.0.1", any.port), 500, withUnixSockets(false));
  expectWords(text, {"no connection to the root (127.0.0.1", "no answer, though somebody listens"});
}

TEST(Rendezvous, AnAddressOfTheOtherFamilyIsRefusedAtOnce) {
  for (const int family : {4, 6}) {
    Network network;
    network.family = family;
    const std::string host = family == 4 ? "fd00::1" : "192.0.2.2", told = family == 4 ? "[fd00::1]" : host;
    for (const int rank : {0, 1}) {
      const Thrown thrown = thrownBy([&] { meetingPlace(aloneAt(rank, host, 29500), network, soon()); });
      EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage));
      expectWords(thrown.text, {told + ":29500 (TUTTI_ROOT)", fmt::format("(TUTTI_SOCKET_FAMILY={})", family)});
    }
  }
}

TEST(Rendezvous, Rank0SaysWhereTheOthersShouldHaveCome) {
  LaunchInfo launch = aloneAt(0, "127.0.0.1", freePort());
  launch.oneHost = true;
  const std::string text = whyNot(launch, 300);
  expectWords(text, {"missing: rank 1", "reach the root: the ranks meet at a Unix socket of this host, for user ",
                     " alone, with the same TUTTI_ROOT, TUTTI_JOB, TUTTI_UNIX_SOCKETS and user ("});
  EXPECT_EQ(text.find("unique id"), std::string::npos) << text;
}

// As an sshd does, or a proxy, that reads what it does not know.
TEST(Rendezvous, WhatHangsUpMayBeNoRootAtAll) {
  Address here;
  here.ip = {127, 0, 0, 1};
  const UniqueFd door = listenTcp(here, false);
  std::jthread service([&](const std::stop_token& over) {
    while (!over.stop_requested()) {
      pollfd caller{door.get(), POLLIN, 0};
      if (::poll(&caller, 1, 20) <= 0) continue;
      const UniqueFd fd(::accept(door.get(), nullptr, nullptr));
      char waste[4096];
      pollfd words{fd.get(), POLLIN, 0};
      if (::poll(&words, 1, 1000) == 1 && ::recv(fd.get(), waste, sizeof waste, 0) < 0) continue;
    }
  });
  const uint16_t port = portOf(door.get());
  const std::string text = whyNot(aloneAt(1, "127.0.0.1", port), 1500);
  expectWords(text, {"the secret differs, or what listens there is not tutti (", fmt::format("127.0.0.1:{}", port),
                     "see first what listens there", "set the same TUTTI_SECRET (or TUTTI_SECRET_FILE) on all ranks"});
}

void expectToBeToldThatSecretsDiffer(bool oneHost) {
  const uint16_t port = freePort();
  inThreads(2, [&](int r) {
    LaunchInfo launch = aloneAt(r, "127.0.0.1", port);
    launch.oneHost = oneHost;
    launch.secret = r == 0 ? "a secret" : "another one";
    const std::string text = whyNot(launch, r == 0 ? 3000 : 1500);
    expectWords(text, {r == 0 ? "did not know the secret of this job" : "the secret differs",
                       "set the same TUTTI_SECRET (or TUTTI_SECRET_FILE) on all ranks"});
    EXPECT_EQ(text.find("unique id"), std::string::npos) << text;
  });
}

TEST(Rendezvous, BothSidesAreToldThatTheSecretsDiffer) { expectToBeToldThatSecretsDiffer(false); }

TEST(Rendezvous, BothSidesAreToldSoAtAUnixSocket) { expectToBeToldThatSecretsDiffer(true); }

// As of a rank 0 whose deadline has passed.
TEST(Rendezvous, ASecretThatDiffersIsToldWhenTheRootHasGone) {
  const uint16_t port = freePort();
  Address any;
  any.v6 = true;
  any.port = port;
  UniqueFd held = listenTcp(any, true);
  ASSERT_TRUE(held);
  std::thread root([&] {
    pollfd ready{held.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 20000), 1);
    const UniqueFd caller(::accept4(held.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char waste[4096];
    EXPECT_GT(::recv(caller.get(), waste, sizeof waste, 0), 0);
    held.reset();
  });
  const std::string text = whyNot(aloneAt(1, "127.0.0.1", port), 1500, withUnixSockets(false));
  root.join();
  expectWords(text, {"the secret differs, or what listens there is not tutti (127.0.0.1", "set the same TUTTI_SECRET",
                     "After that, no connection to the root (127.0.0.1", "see whether rank 0 runs"});
}

// Where the ranks of one host look for each other follows from what must be alike: each side names it.
TEST(Rendezvous, UnixSocketsThatDifferAreNamedOnBothSides) {
  for (const bool rank0May : {true, false}) {
    const uint16_t port = freePort();
    inThreads(2, [&](int r) {
      LaunchInfo launch = aloneAt(r, "127.0.0.1", port);
      launch.oneHost = true;
      const std::string text = whyNot(launch, 1000, withUnixSockets(rank0May == (r == 0)));
      expectWords(text, {"the same TUTTI_ROOT, TUTTI_JOB, TUTTI_UNIX_SOCKETS and user",
                         r == 0 ? "missing: rank 1" : "no connection to the root"});
    });
  }
}

// The names of such a job are its user's alone, over the loopback as well, and what differs then is no secret.
TEST(Rendezvous, RanksOfTwoUsersAreToldThatTheyMayBe) {
  const uint16_t port = freePort();
  inThreads(2, [&](int r) {
    LaunchInfo launch = aloneAt(r, "127.0.0.1", port);
    launch.oneHost = true;
    const Network network = withUnixSockets(false);
    UniqueId id = meetingPlace(launch, network, soon());
    if (r == 1) ++id.job;  // as another user would work it out
    const Deadline deadline = Deadline::in(std::chrono::milliseconds(r == 0 ? 3000 : 1500));
    const std::string text = thrownBy([&] { joinPlane(requestFor(id, r, 2, deadline, network)); }).text;
    expectWords(text, {r == 0 ? "did not know the secret of this job" : "the secret or the user differs",
                       fmt::format("and user (this one: {})", ::geteuid())});
  });
}

// As two that were started with one number: whoever came second says so to the first.
TEST(Rendezvous, TwoThatClaimRank0AreBothNamedAtOnce) {
  for (const bool oneHost : {true, false}) {
    const uint16_t port = freePort();
    inThreads(2, [&](int) {
      LaunchInfo launch = aloneAt(0, "127.0.0.1", port);
      launch.oneHost = oneHost;
      const Thrown thrown = thrownBy([&] { joinPlane(requestFor(meetingPlace(launch, {}, soon()), 0, 2)); });
      EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage));
      const std::string who = fmt::format("host {}, pid {}", hostName(), ::getpid());
      expectWords(thrown.text, {"two processes claim rank 0: " + who + " and " + who, "its own number", "TUTTI_JOB"});
    });
  }
}

// A rank 0 that only wants to tell what it lacks waits for nobody; those who come later hear it all the same.
TEST(Rendezvous, TheRootOutlivesThePatienceOfRank0) {
  for (const bool oneHost : {true, false}) {
    LaunchInfo launch = aloneAt(0, "127.0.0.1", freePort());
    launch.oneHost = oneHost;
    const UniqueId id = meetingPlace(launch, {}, Deadline::in(std::chrono::milliseconds(0)), soon());
    EXPECT_TRUE(tellRootHere(id.job, 0, 0, [] { return "rank 0 lacks something"; }));
    const std::string text = thrownBy([&] { joinPlane(requestFor(id, 1, 2)); }).text;
    expectWords(text, {"rank 0 lacks something"});
  }
}

// Three ports and two ranks, of which rank 0 comes last: it finds the one that was named.
TEST(Rendezvous, WhoComesBeforeRank0LeavesItsPortToIt) {
  Network network;
  network.firstPort = portsInARow(3);
  network.lastPort = static_cast<uint16_t>(network.firstPort + 2);
  const auto join = [&](int r) {
    const LaunchInfo launch = aloneAt(r, "127.0.0.1", network.firstPort);
    return Plane::begin(requestFor(meetingPlace(launch, network, soon()), r, 2, soon(), network));
  };
  const auto early = join(1), late = join(0);
  EXPECT_TRUE(early->awaitJoined(soon()));
  EXPECT_TRUE(late->awaitJoined(soon()));
}

TEST(Rendezvous, ARangeWithoutAPortBesideRank0sSaysSo) {
  const uint16_t port = freePort();
  Network network;
  network.firstPort = network.lastPort = port;
  const std::string text = whyNot(aloneAt(1, "127.0.0.1", port), 300, network);
  expectWords(text, {fmt::format("no free port from {} to {} (TUTTI_PORT_RANGE)", port, port),
                     fmt::format("one more while the ranks join, {}, which the other ranks leave to it", port)});
}

// What holds the port speaks another language.
TEST(Rendezvous, APortThatSomethingElseHoldsIsNamed) {
  const uint16_t port = freePort();
  Address any;
  any.v6 = true;
  any.port = port;
  const UniqueFd held = listenTcp(any, true);
  ASSERT_TRUE(held);
  std::thread other([&] {
    for (pollfd ready{held.get(), POLLIN, 0}; ::poll(&ready, 1, 20000) == 1;) {
      const UniqueFd caller(::accept4(held.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!caller) return;
      EXPECT_EQ(::send(caller.get(), "220 hello\r\n", 11, MSG_NOSIGNAL), 11);
    }
  });
  const LaunchInfo launch = aloneAt(0, "127.0.0.1", port);
  const Thrown thrown = thrownBy([&] { joinPlane(requestFor(meetingPlace(launch, {}, soon()), 0, 2)); });
  ::shutdown(held.get(), SHUT_RDWR);
  other.join();
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kSystem));
  expectWords(thrown.text, {fmt::format("cannot listen at port {}: ", port), "choose another port"});
}

TEST(Rendezvous, ASecretThatCouldBeGuessedIsWarnedOfOnce) {
  const auto warnings = [](const std::string& secret) {
    LaunchInfo launch = aloneAt(0, "127.0.0.1", freePort());
    launch.secret = secret;
    testing::internal::CaptureStderr();
    meetingPlace(launch, {}, soon());
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warnings("XohImNooBHFR0OVvjcYpJ3NgPQ1qq73WKhHvch0VQtg=").find("guessed"), std::string::npos);
  const std::string first = warnings("opensesame");  // the only one of the process, if no test before has had it
  EXPECT_EQ(first.find("opensesame"), std::string::npos);
  if (!first.empty()) expectWords(first, {"could be guessed", "head -c 32 /dev/urandom | base64", "TUTTI_SECRET_FILE"});
  EXPECT_EQ(warnings("another one").find("guessed"), std::string::npos);
}

// It may be forwarded to this host by something that nobody here can see: a warning, and rank 0 listens.
TEST(Rendezvous, Rank0SaysAtOnceThatTheAddressIsNotItsOwn) {
  const uint16_t port = freePort(), own = freePort();
  testing::internal::CaptureStderr();
  std::string text = whyNot(aloneAt(0, "198.51.100.7", port), 1500);
  const std::string warned = testing::internal::GetCapturedStderr();
  const std::vector<std::string> words = {"198.51.100.7", "TUTTI_ROOT", "none of the addresses of this host",
                                          ipOf(chosenAddresses({}).front())};
  expectWords(warned, words);
  expectWords(text, words);
  testing::internal::CaptureStderr();
  text = whyNot(aloneAt(0, "127.0.0.1", own), 1500);
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("none of the addresses"), std::string::npos);
  EXPECT_EQ(text.find("none of the addresses"), std::string::npos) << text;
}

TEST(Rendezvous, AnAddressForwardedToRank0Works) {
  LaunchInfo launch = aloneAt(0, "198.51.100.7", freePort());
  const UniqueId here = meetingPlace(launch, {}, soon());  // its addresses are what is forwarded to
  inThreads(2, [&](int r) { joinPlane(requestFor(here, r, 2)); });
}

TEST(NetworkAddresses, LinkLocalOnesAreNamedByTheInterfacesOfThisHost) {
  Address global, local;
  global.v6 = local.v6 = true;
  global.ip[0] = 0xfd;
  local.ip[0] = 0xfe;
  local.ip[1] = 0x80;
  local.ip[15] = 1;
  EXPECT_EQ(asSeenFromHere({global}), std::vector<Address>{global});
  local.scope = 0x7fffffff;  // no interface has this number
  const auto seen = asSeenFromHere({local, global});
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), global);
  for (size_t i = 0; i + 1 < seen.size(); ++i) {
    EXPECT_EQ(seen[i].ip, local.ip);
    char name[64] = {};
    EXPECT_NE(::if_indextoname(seen[i].scope, name), nullptr) << seen[i].scope;
  }
}

TEST(MeetingPlace, AnIdFileIsWaitedFor) {
  const std::string path = testing::TempDir() + "tutti-id-" + std::to_string(randomNumber());
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const std::string hex = toHex(encode(openRoot({}, soon())));
    EXPECT_EQ(writePrivateFile(AT_FDCWD, path, hex + "\n"), 0);
  });
  LaunchInfo launch;
  launch.idFile = path;
  meetAndJoin(launch, 2);
  writer.join();
  std::remove(path.c_str());
  launch.idFile = path + "-never";
  const Thrown thrown = thrownBy([&] { meetingPlace(launch, {}, Deadline::in(std::chrono::milliseconds(60))); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kTimeout));
}

}  // namespace
}  // namespace tutti::control::test

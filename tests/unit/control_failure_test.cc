// What happens when ranks are missing, wrong, dying, giving up or leaving.
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "control_processes.h"
#include "join/root.h"
#include "net/socket.h"
#include "support/join_plane.h"
#include "support/sanitized.h"

namespace tutti::control::test {
namespace {

constexpr int kManyRanks = kSanitized ? 96 : 512;

TEST(Plane, ProcessesJoinAndLeave) {
  const auto start = Clock::now();
  const UniqueId id = openRoot({}, soon());
  std::vector<pid_t> children;
  for (int r = 1; r < 4; ++r) children.push_back(startRank(id, r, 4, "leave"));
  auto plane = joinPlane(requestFor(id, 0, 4));
  const double joined = msSince(start);
  plane.reset();
  for (const pid_t pid : children) EXPECT_EQ(exitOf(pid), 0);
  std::printf("4 processes: joined after %.1f ms, all ended after %.1f ms\n", joined, msSince(start));
}

TEST(Plane, ManyRanksJoin) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 16384);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < rlim_t(kManyRanks) * 12) GTEST_SKIP() << "needs more file descriptors: ulimit -n";
  const auto start = Clock::now();
  const auto planes = joinAll(kManyRanks);
  std::printf("%d ranks as threads joined after %.1f ms\n", kManyRanks, msSince(start));
  EXPECT_EQ(toText(planes.front()->info(kManyRanks - 1)), "card of " + std::to_string(kManyRanks - 1));
}

// --- joining that fails ---

TEST(Joining, ADeadlineNamesTheMissingRanksToAll) {
  const UniqueId id = openRoot({}, soon());
  const auto start = Clock::now();
  inThreads(8, [&](int r) {
    if (r == 2 || r == 5) return;
    const Thrown thrown = thrownBy(
        [&] { joinPlane(requestFor(id, r, 8, Deadline::in(std::chrono::milliseconds(r == 3 ? 300 : 20000)))); });
    EXPECT_EQ(thrown.code, codeOf(ErrorCode::kTimeout));
    for (const char* words : {"missing: ranks 2, 5", " ms that rank 3 waited, by its TUTTI_JOIN_TIMEOUT_MS"})
      EXPECT_NE(thrown.text.find(words), std::string::npos) << thrown.text;
  });
  std::printf("a deadline of 300 ms was told to all after %.1f ms\n", msSince(start));
  // A rank that comes late is told too.
  EXPECT_EQ(thrownBy([&] { joinPlane(requestFor(id, 2, 8)); }).code, codeOf(ErrorCode::kTimeout));
}

TEST(Joining, ARootThatIsNotThereIsNamed) {
  UniqueId id = openRoot({}, soon());
  id.job ^= 1;
  const Thrown thrown =
      thrownBy([&] { joinPlane(requestFor(id, 1, 2, Deadline::in(std::chrono::milliseconds(1500)))); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kTimeout));
  EXPECT_NE(thrown.text.find("another job answers where the root should be"), std::string::npos) << thrown.text;
}

// Its process may be stopped, or have no descriptor left: that is another matter than a wrong address.
TEST(Joining, ARootThatListensAndDoesNotAnswerIsToldFromNone) {
  const UniqueId id = anyRootPlace().id;
  const UniqueFd silent = listenUnix(rootUnixName(id.job));
  const Thrown thrown = thrownBy([&] { joinPlane(requestFor(id, 1, 2, Deadline::in(std::chrono::seconds(8)))); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kTimeout));
  EXPECT_NE(thrown.text.find("no answer, though somebody listens"), std::string::npos) << thrown.text;
}

TEST(Joining, AWrongSecretDoesNotGetInAndDisturbsNobody) {
  const UniqueId id = openRoot({}, soon());
  UniqueId wrong = id;
  wrong.secret[0] ^= std::byte{1};
  inThreads(3, [&](int r) {
    if (r == 2) {
      const Thrown thrown =
          thrownBy([&] { joinPlane(requestFor(wrong, 1, 3, Deadline::in(std::chrono::milliseconds(1500)))); });
      EXPECT_EQ(thrown.code, codeOf(ErrorCode::kTimeout));
      EXPECT_NE(thrown.text.find("another job answers"), std::string::npos) << thrown.text;
      EXPECT_NE(thrown.text.find("the same unique id"), std::string::npos) << thrown.text;
    }
    joinPlane(requestFor(id, r, 3));
  });
}

TEST(Joining, AnIdIsGoodForOneCommunicatorAndItsRanksSaySoAtOnce) {
  const UniqueId id = decode(encode(openRoot({}, soon())));
  inThreads(2, [&](int r) { joinPlane(requestFor(id, r, 2)); });
  const Thrown thrown = thrownBy([&] { joinPlane(requestFor(id, 1, 2)); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage));
  EXPECT_NE(thrown.text.find("already"), std::string::npos) << thrown.text;
}

// Once it has stopped itself.
void goOnFromStop(pid_t process) {
  int status = 0;
  ASSERT_EQ(::waitpid(process, &status, WUNTRACED), process);
  ASSERT_TRUE(WIFSTOPPED(status));
  ::kill(process, SIGCONT);
}

// A process of its own has the root; what the ranks outside are told.
void expectToldOutside(const UniqueId& id, const std::string& reason) {
  inThreads(4, [&](int i) {
    const Thrown thrown = thrownBy([&] { joinPlane(requestFor(id, i + 1, 5)); });
    EXPECT_EQ(thrown.code, codeOf(ErrorCode::kRemote));
    EXPECT_NE(thrown.text.find(reason), std::string::npos) << thrown.text;
  });
}

TEST(Joining, RanksThatARootHasNoDescriptorForAreTold) {
  if (kSanitized) GTEST_SKIP() << "needs no sanitizer: with no descriptor left, UBSan takes good objects for bad";
  const UniqueId id = anyRootPlace().id;
  const pid_t root = startRank(id, 0, 5, "hoards");
  goOnFromStop(root);
  expectToldOutside(id, "of which ulimit -n allows 128");
  ::kill(root, SIGKILL);
  exitOf(root);
}

// Who hangs on at one door, and calls again as often as it is turned out, had the descriptor that others gave way for
// at another door.
TEST(Joining, RanksThatARootHasNoDescriptorForAreToldAlsoWhereAStrangerHangsOn) {
  if (kSanitized) GTEST_SKIP() << "needs no sanitizer: with no descriptor left, UBSan takes good objects for bad";
  UniqueId id = anyRootPlace().id;
  Address here;
  here.ip = {127, 0, 0, 1};
  here.port = freePort();
  id.addresses = {here};
  const pid_t root = startRank(id, 0, 5, "crowded");
  goOnFromStop(root);
  std::atomic<bool> over{false};
  std::vector<std::jthread> strangers;
  for (int i = 0; i < 4; ++i)
    strangers.emplace_back([&] {
      while (!over) {
        const UniqueFd fd = dialTcp(here);
        pollfd gone{fd.get(), POLLIN | POLLRDHUP, 0};
        while (!over && ::poll(&gone, 1, 20) == 0) {
        }
      }
    });
  expectToldOutside(id, "of which ulimit -n allows 128");
  over = true;
  ::kill(root, SIGKILL);
  exitOf(root);
}

TEST(Joining, RanksOutsideOfAProcessThatHasFailedAreTold) {
  const UniqueId id = anyRootPlace().id;
  constexpr const char* kReason = "rank 0 of 5 could not join: its limits are too low";
  const pid_t root = startRank({id, 0, 5, "dooms", 20000, kReason});
  goOnFromStop(root);
  expectToldOutside(id, kReason);
  EXPECT_EQ(exitOf(root), 0);
}

TEST(Joining, TwoOfOneRankAreBothTold) {
  const UniqueId id = openRoot({}, soon());
  inThreads(3, [&](int i) {
    const Thrown thrown = thrownBy([&] { joinPlane(requestFor(id, i == 2 ? 1 : i, 3)); });
    EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage));
    EXPECT_NE(thrown.text.find("two processes claim rank 1"), std::string::npos) << thrown.text;
  });
}

// Rank 1 is there before the root, is ended like this, and begins again.
void joinAgainAfter(const std::function<void(Plane&)>& end) {
  RootPlace place = anyRootPlace();
  place.tcp = false;
  place.id.place = "at a socket of this test";
  const int threads = runningThreads();
  auto first = Plane::begin(requestFor(place.id, 1, 3));
  end(*first);
  first.reset();
  std::vector<std::shared_ptr<Plane>> planes(3);
  planes[1] = Plane::begin(requestFor(place.id, 1, 3));
  Root root(place, {}, soon());  // as in another process: nobody here knows of it
  std::thread running([&] { root.run(); });
  EXPECT_TRUE(awaitFrom([&] { return runningThreads() <= threads + 2; })) << "those of the root and of the second join";
  for (const int r : {0, 2}) planes[size_t(r)] = Plane::begin(requestFor(place.id, r, 3));
  inThreads(3, [&](int r) { EXPECT_TRUE(planes[size_t(r)]->awaitJoined(soon())); });
  root.halt();
  running.join();
}

// What has become of the first join nobody needs to know; they were to take the two for two processes.
TEST(Joining, ARankThatWasAbortedBeforeTheRootCameMayJoinAgain) {
  joinAgainAfter([](Plane& plane) { plane.fail({1, Stop::kAbort, ErrorCode::kRemote, "rank 1 was aborted"}); });
}
TEST(Joining, ARankThatWasLeftBeforeTheRootCameMayJoinAgain) {
  joinAgainAfter([](Plane& plane) { plane.leave(); });
}

TEST(Joining, DifferingSizesAreToldToBoth) {
  const UniqueId id = openRoot({}, soon());
  inThreads(2, [&](int r) {
    const Thrown thrown = thrownBy([&] { joinPlane(requestFor(id, r, 3 + r)); });
    EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage));
    EXPECT_NE(thrown.text.find("disagree on the size"), std::string::npos) << thrown.text;
  });
}

TEST(Joining, DifferingSettingsAreToldToAllWithBothValues) {
  const UniqueId id = openRoot({}, soon());
  inThreads(3, [&](int r) {
    JoinRequest request = requestFor(id, r, 3);
    request.agreement = {{"TUTTI_THIS", "a"}, {"TUTTI_THAT", r == 1 ? "b" : "c"}};
    if (r == 2) request.agreement.push_back({"TUTTI_OTHER", "only here"});
    const Thrown thrown = thrownBy([&] { joinPlane(request); });
    EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage));
    for (const char* word : {"disagree on settings: TUTTI_THAT is ", "b on rank 1 (", "c on rank "})
      EXPECT_NE(thrown.text.find(word), std::string::npos) << thrown.text;
    EXPECT_EQ(thrown.text.find("TUTTI_THIS"), std::string::npos) << thrown.text;
  });
}

TEST(Joining, ARankOutsideItsSizeIsRefused) {
  const UniqueId id = openRoot({}, soon());
  EXPECT_EQ(thrownBy([&] { joinPlane(requestFor(id, 3, 3)); }).code, codeOf(ErrorCode::kInvalidArgument));
}

// The root is in this process: whoever waits for that rank hears of it, whatever it was that failed.
TEST(Joining, WhatARankCannotBeginIsToldToTheOthers) {
  const UniqueId id = openRoot({}, soon());
  Network network;
  network.interfaces = "=no-such";
  inThreads(2, [&](int r) {
    const Thrown thrown = thrownBy([&] { joinPlane(requestFor(id, r, 2, soon(), r == 0 ? Network() : network)); });
    EXPECT_EQ(thrown.code, codeOf(r == 0 ? ErrorCode::kRemote : ErrorCode::kInvalidUsage));
    EXPECT_NE(thrown.text.find("no-such"), std::string::npos) << thrown.text;
  });
}

// In another process than the root's: it calls the root for this alone.
TEST(Joining, WhatARankElsewhereCannotBeginIsToldToTheOthers) {
  const UniqueId id = openRoot({}, soon());
  const pid_t other = startRank(id, 1, 2, "fails");
  const Thrown thrown = thrownBy([&] { joinPlane(requestFor(id, 0, 2)); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kRemote));
  for (const char* words : {"rank 1 (host ", "left while joining: ", "no-such"})
    EXPECT_NE(thrown.text.find(words), std::string::npos) << thrown.text;
  EXPECT_EQ(exitOf(other), 0);
}

TEST(Joining, ARankThatCannotBeginAndFindsNoRootSaysWhatItLacks) {
  UniqueId id = anyRootPlace().id;
  id.place = "at a socket of this test, where nobody listens";
  Network network;
  network.interfaces = "=no-such";
  const Thrown thrown = thrownBy([&] { joinPlane(requestFor(id, 1, 2, Deadline::never(), network)); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage));
  EXPECT_NE(thrown.text.find("no-such"), std::string::npos) << thrown.text;
}

TEST(Joining, APortRangeThatIsUsedUpSaysSo) {
  Network network;
  const UniqueId taken = openRoot({}, soon());
  network.firstPort = network.lastPort = taken.addresses.at(0).port;
  const Thrown thrown = thrownBy([&] { openRoot(network, soon()); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kSystem));
  EXPECT_NE(thrown.text.find("TUTTI_PORT_RANGE"), std::string::npos) << thrown.text;
}

TEST(Joining, ARangeOfOnePortIsNotEnoughForRank0AndTheTextSaysWhy) {
  Network network;
  network.firstPort = network.lastPort = freePort();
  const UniqueId id = openRoot(network, soon());
  const Thrown thrown = thrownBy([&] { joinPlane(requestFor(id, 0, 1, soon(), network)); });
  EXPECT_NE(thrown.text.find("one more while the ranks join"), std::string::npos) << thrown.text;
  EXPECT_EQ(thrown.text.find("unique id"), std::string::npos) << thrown.text;
}

TEST(Joining, APortRangeIsKept) {
  Network network;
  network.firstPort = 41000;
  network.lastPort = 41999;
  const UniqueId id = openRoot(network, soon());
  for (const Address& address : id.addresses) EXPECT_TRUE(address.port >= 41000 && address.port <= 41999);
  joinAll(3, network);
}

TEST(Joining, OneFamilyIsEnough) {
  for (const int family : {4, 6}) {
    Network network;
    network.family = family;
    network.unixSockets = false;  // as on different hosts
    UniqueId id;
    try {
      id = openRoot(network, soon());
    } catch (const Error& e) {
      GTEST_SKIP() << "this machine lacks IPv" << family << ": " << e.what();
    }
    for (const Address& address : id.addresses) EXPECT_EQ(address.v6, family == 6);
    inThreads(4, [&](int r) {
      const auto plane = joinPlane(requestFor(id, r, 4, soon(), network));
      const int peer = r ^ 1;
      plane->requestStream(peer, 1, StreamKind::kTcp);
      EXPECT_TRUE(awaitStream(*plane, peer, 1));
      plane->allGather({}, soon());
    });
  }
}

TEST(Joining, ASelectedInterfaceIsEnough) {
  Network network;
  network.interfaces = "=lo";
  joinAll(3, network);
  network.interfaces = "=no-such";
  EXPECT_EQ(thrownBy([&] { openRoot(network, soon()); }).code, codeOf(ErrorCode::kInvalidUsage));
}

// --- death, abort, leaving ---

void expectFailure(Plane& plane, int rank, const char* says) {
  const auto failure = awaitFrom([&] { return plane.failure(); });
  ASSERT_TRUE(failure.has_value());
  EXPECT_TRUE(plane.failed());
  EXPECT_EQ(failure->rank, rank);
  EXPECT_NE(failure->text.find(says), std::string::npos) << failure->text;
  EXPECT_EQ(thrownBy([&] { plane.poll(0, 77); }).code, codeOf(ErrorCode::kRemote));
  const Thrown thrown = thrownBy([&] { plane.allGather({}, soon()); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kRemote));
  EXPECT_NE(thrown.text.find(says), std::string::npos) << thrown.text;
}

// A leaf, an inner rank and the top of the tree in turn.
class DeathOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, DeathOf, testing::Values(6, 2, 0));

TEST_P(DeathOf, IsKnownToAllOthers) {
  constexpr int kSize = 7;
  const int victim = GetParam();
  const UniqueId id = openRoot({}, soon());
  const pid_t pid = startRank(id, victim, kSize, "wait");
  std::vector<std::shared_ptr<Plane>> planes(kSize);
  inThreads(kSize, [&](int r) {
    if (r != victim) planes[size_t(r)] = joinPlane(requestFor(id, r, kSize));
  });
  Plane& sender = *planes[1];
  Plane& receiver = *planes[3];
  sender.post(3, 9, toBytes("before"));
  sender.post(3, 8, toBytes("ready"));
  awaitMail(receiver, 1, 8);
  const auto start = Clock::now();
  ::kill(pid, SIGKILL);
  inThreads(kSize, [&](int r) {
    if (r != victim) expectFailure(*planes[size_t(r)], victim, fmt::format("rank {} (host ", victim).c_str());
  });
  std::printf("the death of rank %d of %d was known to all after %.1f ms\n", victim, kSize, msSince(start));
  EXPECT_TRUE(WIFSIGNALED(exitOf(pid)));
  EXPECT_EQ(toText(awaitMail(receiver, 1, 9)), "before") << "what was delivered before stays";
}

TEST(Plane, AbortIsKnownToAll) {
  constexpr int kSize = 7;
  const auto planes = joinAll(kSize);
  planes[4]->fail({4, Stop::kAbort, ErrorCode::kRemote, "rank 4 aborted: out of memory"});
  inThreads(kSize, [&](int r) { expectFailure(*planes[size_t(r)], 4, "out of memory"); });
  EXPECT_EQ(planes[6]->failure()->stop, Stop::kAbort);
}

Answer awaitAnswer(Plane& plane, int rank) {
  return awaitFrom([&] { return plane.lastAnswer(rank); }).value();
}

// Every rank says its own number, and what it was asked.
std::vector<std::shared_ptr<Plane>> joinTalkative(int size) {
  return joinAll(size, [](JoinRequest& request) {
    request.respond = [rank = request.rank](std::span<const std::byte> question) {
      return toBytes(fmt::format("rank {} hears {}", rank, toText(Bytes(question.begin(), question.end()))));
    };
  });
}

TEST(Plane, EveryRankAnswersEveryRank) {
  constexpr int kSize = 6;
  const auto planes = joinTalkative(kSize);
  inThreads(kSize, [&](int r) {
    Plane& self = *planes[size_t(r)];
    for (int to = 0; to < kSize; ++to) self.ask(to, toBytes("you"));
    for (int to = 0; to < kSize; ++to) {
      const Answer answer = awaitAnswer(self, to);
      EXPECT_FALSE(answer.left);
      EXPECT_EQ(toText(answer.body), fmt::format("rank {} hears you", to));
    }
  });
  EXPECT_EQ(thrownBy([&] { planes[0]->ask(kSize, {}); }).code, codeOf(ErrorCode::kInvalidArgument));
}

TEST(Plane, ARankThatHasLeftIsSaidToHaveLeft) {
  auto planes = joinTalkative(7);
  for (const int gone : {1, 3, 4, 6}) planes[size_t(gone)].reset();
  for (const int gone : {1, 3, 4, 6}) {
    // It may take its leave a moment after its owner has gone, and a question may arrive just while it does.
    const auto left = [&] {
      planes[5]->ask(gone, {});
      const auto wait = Deadline::in(std::chrono::milliseconds(50));
      const auto answer = awaitFrom([&] { return planes[5]->lastAnswer(gone); }, wait);
      return answer && answer->left;
    };
    while (!left()) std::this_thread::yield();
  }
}

TEST(Plane, AJoinCanBeEnded) {
  const UniqueId id = openRoot({}, soon());
  JoinRequest request;
  request.id = id;
  request.size = 2;
  request.deadline = soon();
  const auto plane = Plane::begin(request);
  plane->fail({0, Stop::kAbort, ErrorCode::kRemote, "rank 0 has changed its mind"});
  EXPECT_EQ(thrownBy([&] { plane->awaitJoined(soon()); }).code, codeOf(ErrorCode::kRemote));
  EXPECT_TRUE(plane->failed());
  // The other rank learns it from the root, or misses this one, if it had not come to the root yet.
  request.rank = 1;
  request.deadline = Deadline::in(std::chrono::seconds(2));
  const Thrown thrown = thrownBy([&] { joinPlane(request); });
  EXPECT_TRUE(thrown.code == codeOf(ErrorCode::kRemote) || thrown.code == codeOf(ErrorCode::kTimeout)) << thrown.code;
  EXPECT_NE(thrown.text.find("rank 0"), std::string::npos) << thrown.text;
}

TEST(Plane, AbortEndsAWaitInProgress) {
  const auto planes = joinAll(3);
  inThreads(3, [&](int r) {
    if (r == 2) return planes[2]->fail({2, Stop::kAbort, ErrorCode::kRemote, "enough"});
    EXPECT_EQ(thrownBy([&] { planes[size_t(r)]->allGather({}, soon()); }).code, codeOf(ErrorCode::kRemote));
  });
}

TEST(Plane, AnExchangeThatOneRankDoesNotJoinTimesOutAndSaysWho) {
  const auto planes = joinAll(4);
  inThreads(4, [&](int r) {
    if (r == 3) return;
    const Thrown thrown =
        thrownBy([&] { planes[size_t(r)]->allGather({}, Deadline::in(std::chrono::milliseconds(150))); });
    EXPECT_EQ(thrown.code, codeOf(ErrorCode::kTimeout));
    // Rank 1 may have come, as it has here: nobody above knows.
    const char* const who = r == 0   ? "has not heard from rank 1, which speaks for those below it too"
                            : r == 1 ? "has not heard from rank 3"
                                     : "";
    EXPECT_TRUE(thrown.text.ends_with(who)) << thrown.text;
  });
}

TEST(Plane, AnExchangeWithOneWhoHasLeftFails) {
  for (const int leaver : {0, 1, 3}) {
    auto planes = joinAll(4);
    planes[size_t(leaver)].reset();
    inThreads(4, [&](int r) {
      if (r == leaver) return;
      const Thrown thrown = thrownBy([&] { planes[size_t(r)]->allGather({}, soon()); });
      EXPECT_EQ(thrown.code, codeOf(ErrorCode::kRemote));
      EXPECT_NE(thrown.text.find(fmt::format("rank {} ", leaver)), std::string::npos) << thrown.text;
    });
  }
}

TEST(Plane, AStreamThatCannotBeHadIsAnErrorAtBothEnds) {
  auto planes = joinAll(3);
  planes[2].reset();  // its listener goes away with it
  planes[0]->requestStream(2, 1, StreamKind::kUnix);
  const Thrown thrown = thrownBy([&] { awaitStream(*planes[0], 2, 1); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kSystem));
  EXPECT_NE(thrown.text.find("rank 2"), std::string::npos) << thrown.text;
  EXPECT_EQ(thrownBy([&] { planes[0]->requestStream(0, 1, StreamKind::kUnix); }).code,
            codeOf(ErrorCode::kInvalidArgument));
  EXPECT_EQ(thrownBy([&] { planes[0]->pollStream(1, 4); }).code, codeOf(ErrorCode::kInvalidUsage));
}

TEST(Plane, WithoutUnixSocketsTheTextNamesTheVariable) {
  Network network;
  network.unixSockets = false;
  auto planes = joinAll(2, network);
  planes[0]->requestStream(1, 1, StreamKind::kUnix);
  const Thrown thrown = thrownBy([&] { awaitStream(*planes[0], 1, 1); });
  EXPECT_NE(thrown.text.find("TUTTI_UNIX_SOCKETS=0"), std::string::npos) << thrown.text;
}

// One thread takes all planes down, in any order, while the ranks that remain send each other mail through the tree.
TEST(Plane, LeavingInAnyOrderCutsNobodyOff) {
  constexpr int kSize = 9;
  std::mt19937 random(20);
  for (int round = 0; round < 12; ++round) {
    auto planes = joinAll(kSize);
    std::vector<int> order(kSize);
    for (int r = 0; r < kSize; ++r) order[size_t(r)] = r;
    std::shuffle(order.begin(), order.end(), random);
    for (int gone = 0; gone < kSize; ++gone) {
      planes[size_t(order[size_t(gone)])].reset();
      if (gone + 2 > kSize - 1) continue;
      Plane& a = *planes[size_t(order[size_t(gone) + 1])];
      Plane& b = *planes[size_t(order[size_t(gone) + 2])];
      a.post(b.rank(), uint64_t(gone), toBytes("there"));
      EXPECT_EQ(toText(awaitMail(b, a.rank(), uint64_t(gone))), "there");
      EXPECT_FALSE(a.failed() || b.failed());
    }
  }
}

TEST(Plane, LeavesNeitherDescriptorsNorThreadsBehind) {
  joinAll(2);
  const auto settled = [](int before, int (*count)()) {
    for (int i = 0; i < 200 && count() > before; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return count();
  };
  // What earlier tests have left to the background must have ended first; their roots may still wait for late ranks.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const int descriptors = openDescriptors(), threads = runningThreads();
  for (int i = 0; i < 5; ++i) {
    const auto planes = joinAll(5);
    planes[1]->requestStream(3, 1, StreamKind::kTcp);
    planes[3]->requestStream(1, 1, StreamKind::kTcp);
    awaitStream(*planes[1], 3, 1);
  }
  EXPECT_LE(settled(descriptors, openDescriptors), descriptors);
  EXPECT_LE(settled(threads, runningThreads), threads);
}

}  // namespace
}  // namespace tutti::control::test

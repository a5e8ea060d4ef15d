// Signs of life: a rank that is stopped is found silent, one that is only slow is not, and one that comes back learns
// that it was given up.
#include <array>
#include <cstdio>
#include <string>

#include "control_processes.h"
#include "support/join_plane.h"
#include "support/patience.h"
#include "wire/messages.h"

namespace tutti::control::test {
namespace {

using std::chrono::milliseconds;

JoinRequest withHeartbeat(const UniqueId& id, int rank, int size, milliseconds heartbeat = kHeartbeat) {
  JoinRequest request = requestFor(id, rank, size);
  request.heartbeat = heartbeat;
  return request;
}

Failure awaitFailure(Plane& plane) {
  return awaitFrom([&] { return plane.failure(); }).value();
}

// The others, as threads, beside one rank in a process of its own.
std::vector<std::shared_ptr<Plane>> joinBeside(const UniqueId& id, int size, int absent, milliseconds heartbeat,
                                               const Network& network = {}) {
  std::vector<std::shared_ptr<Plane>> planes(static_cast<size_t>(size));
  inThreads(size, [&](int r) {
    if (r == absent) return;
    JoinRequest request = withHeartbeat(id, r, size, heartbeat);
    request.network = network;
    planes[size_t(r)] = joinPlane(request);
    awaitMail(*planes[size_t(r)], absent, kReadyKey);
  });
  return planes;
}

// A leaf, an inner rank and the top of the tree in turn.
class SilenceOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, SilenceOf, testing::Values(6, 2, 0));

TEST_P(SilenceOf, IsKnownToAllOthersAndInTheEndToItself) {
  constexpr int kSize = 7;
  const int victim = GetParam();
  const UniqueId id = openRoot({}, soon());
  const pid_t pid =
      startRank({id, victim, kSize, "witness", int(kHeartbeat.count()), "the others have given this rank up"});
  auto planes = joinBeside(id, kSize, victim, kHeartbeat);
  const auto start = Clock::now();
  ::kill(pid, SIGSTOP);
  inThreads(kSize, [&](int r) {
    if (r == victim) return;
    const Failure failure = awaitFailure(*planes[size_t(r)]);
    EXPECT_EQ(failure.rank, victim);
    EXPECT_EQ(failure.stop, Stop::kSilence);
    EXPECT_NE(failure.text.find(fmt::format("pid {}) was silent for ", pid)), std::string::npos) << failure.text;
    EXPECT_NE(failure.text.find("TUTTI_HEARTBEAT_MS"), std::string::npos) << failure.text;
  });
  std::printf("the silence of rank %d of %d (heartbeat %d ms) was known to all after %.0f ms\n", victim, kSize,
              int(kHeartbeat.count()), msSince(start));
  ::kill(pid, SIGCONT);
  EXPECT_EQ(exitOf(pid), 0);
}

// Nothing is asked of anyone for several heartbeats: the signs of life alone keep the tree up.
TEST(Liveness, AQuietTreeStaysUp) {
  for (const bool unixSockets : {true, false}) {
    Network network;
    network.unixSockets = unixSockets;
    const auto planes = joinAll(5, network, [](JoinRequest& request) { request.heartbeat = milliseconds(1000); });
    std::this_thread::sleep_for(milliseconds(3000));
    for (const auto& plane : planes) {
      const auto failure = plane->failure();
      EXPECT_FALSE(failure.has_value()) << failure->text;
    }
  }
}

TEST(Liveness, WithoutAHeartbeatSilenceIsNoFailure) {
  const UniqueId id = openRoot({}, soon());
  const pid_t pid = startRank({id, 1, 3, "wait", 0, {}});
  auto planes = joinBeside(id, 3, 1, milliseconds(0));
  ::kill(pid, SIGSTOP);
  std::this_thread::sleep_for(milliseconds(700));
  EXPECT_FALSE(planes[0]->failed() || planes[2]->failed());
  ::kill(pid, SIGKILL);
  EXPECT_EQ(awaitFailure(*planes[2]).stop, Stop::kDeath) << "a closed line still is";
  exitOf(pid);
}

// As with ^Z or a suspended machine: nobody hears anything of anyone for longer than a heartbeat, and nobody is to
// blame.
TEST(Liveness, AJobThatIsStoppedAsAWholeGoesOn) {
  const auto planes = joinAll(3, [](JoinRequest& request) {
    request.heartbeat = milliseconds(1000);
    request.respond = [](std::span<const std::byte>) {
      std::this_thread::sleep_for(milliseconds(2000));
      return Bytes{};
    };
  });
  inThreads(3, [&](int r) {
    planes[size_t(r)]->ask(r, {});
    awaitFrom([&] { return planes[size_t(r)]->lastAnswer(r); });
  });
  std::this_thread::sleep_for(milliseconds(500));
  for (const auto& plane : planes) {
    const auto failure = plane->failure();
    EXPECT_FALSE(failure.has_value()) << failure->text;
  }
}

// Ranks 0 and 3 of four join, and rank 1, which is stopped so long after its process has begun. What the two are told.
std::array<Thrown, 2> joinBesideStopped(milliseconds after) {
  const UniqueId id = openRoot({}, Deadline::in(milliseconds(10'000) + after));
  const pid_t pid = startRank({id, 1, 4, "wait", int(kHeartbeat.count()), {}});
  std::array<Thrown, 2> thrown;
  std::thread stopping([&] {
    std::this_thread::sleep_for(after);
    ::kill(pid, SIGSTOP);
  });
  inThreads(2, [&](int i) { thrown[size_t(i)] = thrownBy([&] { joinPlane(withHeartbeat(id, 3 * i, 4)); }); });
  stopping.join();
  ::kill(pid, SIGKILL);
  exitOf(pid);
  return thrown;
}

// Rank 1 is stopped before the last rank comes, when it knows its place already. On a slow machine it may be stopped
// before it has come at all, and is one of the missing then: the next try gives it more time.
TEST(Liveness, ASilentRankIsNamedWhileJoining) {
  std::array<Thrown, 2> thrown;
  for (milliseconds after(300); after < milliseconds(60'000); after *= 3) {
    thrown = joinBesideStopped(after);
    if (thrown[0].text.find("missing: ranks 1, 2") == std::string::npos) break;
  }
  for (const Thrown& it : thrown) {
    EXPECT_EQ(it.code, codeOf(ErrorCode::kRemote)) << it.text;
    EXPECT_NE(it.text.find("rank 1 (host "), std::string::npos) << it.text;
    EXPECT_NE(it.text.find("was silent for"), std::string::npos) << it.text;
  }
}

// Tables of many megabytes keep each rank's thread busy, and are signs of life themselves.
TEST(Liveness, LongMessagesAreSignsOfLife) {
  const auto planes =
      joinAll(4, [](JoinRequest& request) { request.heartbeat = milliseconds(5000) * int(tutti::test::patience()); });
  inThreads(4, [&](int r) {
    const Bytes mine(kMostShareBytes, std::byte(r));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(planes[size_t(r)]->allGather(mine, soon()).at(3)[0], std::byte{3});
  });
}

}  // namespace
}  // namespace tutti::control::test

// Several deaths at once, and survivors that leave as soon as they know: nobody but the dead is ever blamed.
#include <algorithm>
#include <cstdio>
#include <random>
#include <set>
#include <string>

#include "control_processes.h"
#include "support/join_plane.h"
#include "support/sanitized.h"

namespace tutti::control::test {
namespace {

constexpr int kDeathRounds = kSanitized ? 6 : 40;

std::set<int> chooseRanks(int size, int count, std::mt19937& random) {
  std::set<int> chosen;
  while (chosen.size() < static_cast<size_t>(count)) chosen.insert(static_cast<int>(random() % unsigned(size)));
  return chosen;
}

// The survivors leave the moment they know. Each must have heard first of one of those who died.
void killAtOnce(int size, const std::set<int>& victims, bool stay) {
  const UniqueId id = openRoot({}, soon());
  std::vector<pid_t> pids;
  for (const int victim : victims) pids.push_back(startRank(id, victim, size, "wait"));
  std::vector<std::shared_ptr<Plane>> planes(static_cast<size_t>(size));
  inThreads(size, [&](int r) {
    if (!victims.contains(r)) planes[size_t(r)] = joinPlane(requestFor(id, r, size));
  });
  for (const pid_t pid : pids) ::kill(pid, SIGKILL);
  inThreads(size, [&](int r) {
    if (victims.contains(r)) return;
    const auto failure = awaitFrom([&] { return planes[size_t(r)]->failure(); });
    EXPECT_EQ(failure->stop, Stop::kDeath);
    EXPECT_TRUE(victims.contains(failure->rank)) << "rank " << r << " of " << size << " heard: " << failure->text;
    if (!stay) planes[size_t(r)].reset();
  });
  for (const pid_t pid : pids) exitOf(pid);
}

// Each rank twice, one of them late: the root stays for that one.
TEST(ControlPlane, AJobThatWasStartedTwiceIsToldToAll) {
  const UniqueId id = openRoot({}, soon());
  const auto join = [&](int rank) {
    const Thrown thrown = thrownBy([&] { joinPlane(requestFor(id, rank, 2)); });
    EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage)) << thrown.text;
    EXPECT_NE(thrown.text.find("two processes claim rank 0"), std::string::npos) << thrown.text;
  };
  inThreads(2, [&](int) { join(0); });
  join(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  join(1);
}

TEST(ControlPlane, AnIdThatWasUsedUpIsKnownWhereItWasMade) {
  const UniqueId id = openRoot({}, soon());
  for (const pid_t pid : {startRank(id, 0, 2, "leave"), startRank(id, 1, 2, "leave")}) EXPECT_EQ(exitOf(pid), 0);
  JoinRequest late = requestFor(id, 0, 2);
  Thrown thrown;
  do {  // the root may have yet to hear that both have joined
    late.deadline = Deadline::in(std::chrono::milliseconds(100));
    thrown = thrownBy([&] { joinPlane(late); });
  } while (thrown.code == codeOf(ErrorCode::kTimeout));
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage));
  EXPECT_NE(thrown.text.find("has been made with this unique id already"), std::string::npos) << thrown.text;
}

TEST(Deaths, SeveralAtOnceReachEveryPartOfTheTree) {
  std::mt19937 random(7);
  for (int round = 0; round < kDeathRounds; ++round) {
    const int size = 4 + int(random() % 10);
    killAtOnce(size, chooseRanks(size, 1 + int(random() % 4) % (size - 1), random), round % 2 == 0);
  }
}

// Everyone below the top is cut off from everyone else.
TEST(Deaths, AWholeLevelOfTheTreeDies) { killAtOnce(15, {1, 2, 4, 5}, false); }

TEST(Deaths, WhoAbortsAndLeavesIsHeardWithItsReason) {
  std::mt19937 random(8);
  for (int round = 0; round < 5 * kDeathRounds; ++round) {
    const int size = 2 + int(random() % 9), who = int(random() % unsigned(size));
    auto planes = joinAll(size);
    inThreads(size, [&](int r) {
      if (r == who) planes[size_t(r)]->fail({who, Stop::kAbort, ErrorCode::kRemote, "out of memory"});
      const auto failure = awaitFrom([&] { return planes[size_t(r)]->failure(); });
      EXPECT_EQ(failure->text, "out of memory") << "rank " << r << " of " << size << ", " << who << " aborted";
      planes[size_t(r)].reset();
    });
  }
}

// It serves those below it in the tree, who are cut off by the end of its process; but it has not died.
TEST(Deaths, AProcessThatEndsRightAfterItsRankHasLeftIsToldAsSuch) {
  const UniqueId id = openRoot({}, soon());
  const pid_t pid = startRank(id, 0, 3, "vanish");
  std::vector<std::shared_ptr<Plane>> planes(3);
  inThreads(2, [&](int i) { planes[size_t(i) + 1] = joinPlane(requestFor(id, i + 1, 3)); });
  EXPECT_EQ(exitOf(pid), 0);
  for (const int r : {1, 2}) {
    const auto failure = awaitFrom([&] { return planes[size_t(r)]->failure(); });
    EXPECT_EQ(failure->rank, 0);
    EXPECT_EQ(failure->stop, Stop::kDeath);
    EXPECT_NE(failure->text.find(" has left in good order, and its process ended"), std::string::npos) << failure->text;
  }
}

// One thread aborts while another one leaves: the others hear nothing, or the reason.
TEST(Deaths, AnAbortThatRacesWithLeavingBlamesNobody) {
  for (int round = 0; round < 5 * kDeathRounds; ++round) {
    auto planes = joinAll(5);
    std::shared_ptr<Plane> shared = std::move(planes[1]);
    inThreads(2, [&, weak = std::weak_ptr<Plane>(shared)](int i) {
      if (i == 0) return shared.reset();
      if (const auto plane = weak.lock()) plane->fail({1, Stop::kAbort, ErrorCode::kRemote, "enough"});
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // whatever is said is said by now, in most rounds
    for (const int r : {0, 3}) {
      const auto failure = planes[size_t(r)]->failure();
      EXPECT_TRUE(!failure || failure->text == "enough") << failure->text;
    }
  }
}

// --- revoke: everything stops, nobody is gone ---

TEST(Revoke, StopsTheWorkAndLeavesTheTree) {
  constexpr int kSize = 7;
  auto planes = joinAll(kSize, [](JoinRequest& request) {
    request.respond = [rank = request.rank](std::span<const std::byte>) { return toBytes(fmt::format("{}", rank)); };
  });
  planes[3]->fail({3, Stop::kRevoke, ErrorCode::kRemote, "rank 3 revoked the communicator"});
  inThreads(kSize, [&](int r) {
    Plane& self = *planes[size_t(r)];
    const auto failure = awaitFrom([&] { return self.failure(); });
    EXPECT_EQ(failure->stop, Stop::kRevoke);
    EXPECT_EQ(failure->rank, 3);
    const Thrown thrown = thrownBy([&] { self.allGather({}, soon()); });
    EXPECT_EQ(thrown.code, codeOf(ErrorCode::kRemote));
    EXPECT_NE(thrown.text.find("revoked"), std::string::npos) << thrown.text;
  });
  // Also through ranks whose owners have left: their part of the tree stays for those below.
  for (const int gone : {0, 1}) planes[size_t(gone)].reset();
  inThreads(kSize, [&](int r) {
    if (r < 2) return;
    Plane& self = *planes[size_t(r)];
    for (int to = 2; to < kSize; ++to) {
      self.ask(to, {});
      const auto answer = awaitFrom([&] { return self.lastAnswer(to); });
      EXPECT_FALSE(answer->left);
      EXPECT_EQ(toText(answer->body), fmt::format("{}", to));
    }
  });
}

TEST(Revoke, ADeathAfterwardsHoldsNobodyUp) {
  const UniqueId id = openRoot({}, soon());
  const pid_t pid = startRank(id, 1, 7, "wait");
  std::vector<std::shared_ptr<Plane>> planes(7);
  inThreads(7, [&](int r) {
    if (r != 1) planes[size_t(r)] = joinPlane(requestFor(id, r, 7));
  });
  const int before = runningThreads();
  planes[5]->fail({5, Stop::kRevoke, ErrorCode::kRemote, "revoked"});
  for (const auto& plane : planes)
    if (plane) awaitFrom([&] { return plane->failure(); });
  ::kill(pid, SIGKILL);
  exitOf(pid);
  planes.clear();
  // The background parts of the six end by themselves.
  for (int i = 0; i < 500 && runningThreads() > before - 6; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(runningThreads(), before - 6);
}

}  // namespace
}  // namespace tutti::control::test

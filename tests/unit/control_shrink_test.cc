// The survivors go on: after deaths, silence, aborts and revokes, and while more of them die.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>
#include <semaphore>
#include <set>
#include <string>

#include "control_processes.h"
#include "support/join_plane.h"
#include "support/sanitized.h"

namespace tutti::control::test {
namespace {

using std::chrono::milliseconds;
using Planes = std::vector<std::shared_ptr<Plane>>;

constexpr int kShrinkRounds = kSanitized ? 5 : 15;

// What the new plane is to be like. Its id, rank and size do not count.
JoinRequest like(int oldRank, Deadline deadline = soon(), int heartbeatMs = 20000) {
  JoinRequest request;
  request.rank = -7;
  request.size = -7;
  request.info = toBytes(fmt::format("was {}", oldRank));
  request.deadline = deadline;
  request.heartbeat = milliseconds(heartbeatMs);
  return request;
}

// Joins all ranks but the victims as threads, the victims as processes.
struct Job {
  Planes planes;
  std::map<int, pid_t> pids;
};
Job joinWithVictims(int size, const std::set<int>& victims, int heartbeatMs = 20000, const char* mode = "wait") {
  const UniqueId id = openRoot({}, soon());
  Job job;
  for (const int victim : victims) job.pids[victim] = startRank({id, victim, size, mode, heartbeatMs, {}});
  job.planes.resize(static_cast<size_t>(size));
  inThreads(size, [&](int r) {
    if (victims.contains(r)) return;
    JoinRequest request = requestFor(id, r, size);
    request.heartbeat = milliseconds(heartbeatMs);
    job.planes[size_t(r)] = joinPlane(request);
    for (const int victim : victims) awaitMail(*job.planes[size_t(r)], victim, kReadyKey);
  });
  return job;
}

// The ranks that they had at first, as they told of themselves (like()).
std::vector<int> membersOf(const Plane& plane) {
  std::vector<int> ranks;
  for (int r = 0; r < plane.size(); ++r) ranks.push_back(std::stoi(toText(plane.info(r)).substr(std::strlen("was "))));
  return ranks;
}

// The new plane of `oldRank` is that of these survivors, and works.
void expectWorks(Plane& plane, int oldRank, const std::vector<int>& survivors) {
  EXPECT_EQ(membersOf(plane), survivors) << "as old rank " << oldRank << " sees it";
  EXPECT_EQ(survivors.at(size_t(plane.rank())), oldRank);
  const auto table = plane.allGather(toBytes(std::to_string(oldRank)), soon());
  for (int r = 0; r < plane.size(); ++r)
    EXPECT_EQ(toText(table.at(size_t(r))), std::to_string(survivors.at(size_t(r))));
}

// All who have a plane shrink theirs and use the new one.
Planes shrinkAll(const Planes& planes, const std::vector<int>& survivors, std::vector<double>* times = nullptr) {
  Planes fresh(planes.size());
  const auto start = Clock::now();
  inThreads(int(planes.size()), [&](int r) {
    if (!planes[size_t(r)]) return;
    fresh[size_t(r)] = planes[size_t(r)]->shrink(like(r));
    expectWorks(*fresh[size_t(r)], r, survivors);
  });
  if (times != nullptr) times->push_back(msSince(start));
  return fresh;
}

std::vector<int> without(int size, const std::set<int>& victims) {
  std::vector<int> rest;
  for (int r = 0; r < size; ++r)
    if (!victims.contains(r)) rest.push_back(r);
  return rest;
}

void killAndShrink(int size, const std::set<int>& victims, std::vector<double>* times = nullptr) {
  Job job = joinWithVictims(size, victims);
  for (const auto& [rank, pid] : job.pids) ::kill(pid, SIGKILL);
  shrinkAll(job.planes, without(size, victims), times);
  for (const auto& [rank, pid] : job.pids) exitOf(pid);
}

TEST(Shrink, OfAHealthyPlaneIsACopy) {
  const auto planes = joinAll(5);
  const auto copies = shrinkAll(planes, without(5, {}));
  const auto copiesOfCopies = shrinkAll(copies, without(5, {}));
  const auto secondCopies = shrinkAll(planes, without(5, {}));
  inThreads(5, [&](int r) { planes[size_t(r)]->allGather({}, soon()); });
}

TEST(Shrink, OfOneRank) { shrinkAll(joinAll(1), {0}); }

TEST(Shrink, AfterAnyOneDeath) {
  std::vector<double> times;
  for (int size = 2; size <= 9; ++size)
    for (int victim = 0; victim < size; ++victim) killAndShrink(size, {victim}, &times);
  std::sort(times.begin(), times.end());
  std::printf("from a death to a new plane that has exchanged something: median %.1f ms, most %.1f ms, %zu times\n",
              times[times.size() / 2], times.back(), times.size());
}

TEST(Shrink, AfterTwoDeaths) {
  std::mt19937 random(3);
  for (int round = 0; round < kShrinkRounds; ++round) {
    const int size = 3 + int(random() % 7);
    const int first = int(random() % unsigned(size)), second = (first + 1 + int(random() % unsigned(size - 1))) % size;
    killAndShrink(size, {first, second});
  }
}

TEST(Shrink, AfterAnAbortEveryoneIsThere) {
  const auto planes = joinAll(6);
  planes[2]->fail({2, Stop::kAbort, ErrorCode::kRemote, "rank 2 aborted"});
  shrinkAll(planes, without(6, {}));
}

TEST(Shrink, AfterARevokeEveryoneIsThere) {
  const auto planes = joinAll(6);
  planes[0]->fail({0, Stop::kRevoke, ErrorCode::kRemote, "rank 0 revoked"});
  shrinkAll(planes, without(6, {}));
}

TEST(Shrink, WhoseOwnerHasLeftIsLeftOut) {
  for (const int leaver : {0, 2, 4}) {
    auto planes = joinAll(5);
    planes[size_t(leaver)].reset();
    shrinkAll(planes, without(5, {leaver}));
  }
}

TEST(Shrink, WhoseOwnerLeavesMeanwhileIsLeftOut) {
  for (const int leaver : {0, 2, 4}) {
    auto planes = joinAll(5);
    auto leaving = std::move(planes[size_t(leaver)]);
    std::thread owner([&] {
      std::this_thread::sleep_for(milliseconds(30));
      leaving->leave();
    });
    shrinkAll(planes, without(5, {leaver}));
    owner.join();
  }
}

// Those who wait for a rank that gives up, and stays, hear why. A fourth never calls.
TEST(Shrink, WhoGivesUpIsNotWaitedFor) {
  for (const int quitter : {0, 1, 2}) {
    const auto planes = joinAll(4);
    std::thread quits([&] {
      std::this_thread::sleep_for(milliseconds(60));
      planes[size_t(quitter)]->fail({quitter, Stop::kGivenUp, ErrorCode::kRemote, "changed my mind"});
    });
    inThreads(3, [&](int r) {
      const Thrown thrown = thrownBy([&] { planes[size_t(r)]->shrink(like(r)); });
      EXPECT_EQ(thrown.code, codeOf(ErrorCode::kRemote));
      EXPECT_EQ(thrown.text, "changed my mind") << "rank " << r << " for " << quitter;
    });
    quits.join();
    shrinkAll(planes, without(4, {}));
  }
}

// It has not begun to shrink yet, and leaves; the others wait for it already.
TEST(Shrink, WhoAbortsThePlaneBeforeItsCallIsLeftOut) {
  auto planes = joinAll(3);
  auto aborted = std::move(planes[0]);
  std::thread owner([&] {
    std::this_thread::sleep_for(milliseconds(30));
    aborted->fail({0, Stop::kAbort, ErrorCode::kRemote, "rank 0 called tuttiCommAbort"});
    EXPECT_EQ(thrownBy([&] { aborted->shrink(like(0), {}, [] { return true; }); }).code, codeOf(ErrorCode::kRemote));
    std::this_thread::sleep_for(milliseconds(30));
    aborted->leave();
  });
  shrinkAll(planes, without(3, {0}));
  owner.join();
}

// Two wait at one that has not called: it tells the one that the other does not wait any more.
TEST(Shrink, WhoGivesUpWhereNobodyLeadsYetIsNotWaitedFor) {
  const auto planes = joinAll(3);
  std::thread quits([&] {
    std::this_thread::sleep_for(milliseconds(60));
    planes[2]->fail({2, Stop::kGivenUp, ErrorCode::kRemote, "changed my mind"});
  });
  inThreads(3, [&](int r) {
    if (r == 0) return;
    EXPECT_EQ(thrownBy([&] { planes[size_t(r)]->shrink(like(r)); }).text, "changed my mind");
  });
  quits.join();
  shrinkAll(planes, without(3, {}));
}

class ShrinkOverTcp : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(InClearOrSealed, ShrinkOverTcp, testing::Bool());

TEST_P(ShrinkOverTcp, Works) {
  Network network;
  network.unixSockets = false;
  auto planes = joinAll(5, network, [](JoinRequest& request) { request.encrypt = GetParam(); });
  planes[0].reset();
  Planes fresh(5);
  inThreads(5, [&](int r) {
    if (r == 0) return;
    JoinRequest request = like(r);
    request.network = network;
    request.encrypt = GetParam();
    fresh[size_t(r)] = planes[size_t(r)]->shrink(request);
    expectWorks(*fresh[size_t(r)], r, {1, 2, 3, 4});
  });
}

// Owners that take their time: the others wait for them.
TEST(Shrink, WaitsForThoseWhoComeLate) {
  std::mt19937 random(4);
  for (int round = 0; round < 6; ++round) {
    const auto planes = joinAll(5);
    std::vector<int> delays(5);
    for (int& delay : delays) delay = int(random() % 60);
    inThreads(5, [&](int r) {
      std::this_thread::sleep_for(milliseconds(delays[size_t(r)]));
      expectWorks(*planes[size_t(r)]->shrink(like(r)), r, without(5, {}));
    });
  }
}

TEST(Shrink, NamesThoseWhoDoNotCome) {
  for (const int absent : {0, 3}) {
    const auto planes = joinAll(5);
    inThreads(5, [&](int r) {
      if (r == absent) return;
      const Thrown thrown = thrownBy([&] { planes[size_t(r)]->shrink(like(r, Deadline::in(milliseconds(400)))); });
      EXPECT_EQ(thrown.code, codeOf(ErrorCode::kTimeout));
      EXPECT_NE(thrown.text.find(fmt::format("rank {} (host ", absent)), std::string::npos) << thrown.text;
    });
    // Now it comes, and all find together.
    shrinkAll(planes, without(5, {}));
  }
}

TEST(Shrink, AFailOfTheOwnPlaneEndsIt) {
  for (const int quitter : {0, 2}) {
    auto planes = joinAll(4);
    std::atomic<bool> over{false};
    std::thread waiting([&] {
      const Thrown thrown = thrownBy([&] { planes[size_t(quitter)]->shrink(like(quitter)); });
      over = true;
      EXPECT_EQ(thrown.code, codeOf(ErrorCode::kRemote));
      EXPECT_EQ(thrown.text, "changed my mind");
    });
    // It may not be in there yet, and is told again then.
    for (; !over; std::this_thread::sleep_for(milliseconds(20)))
      planes[size_t(quitter)]->fail({quitter, Stop::kAbort, ErrorCode::kRemote, "changed my mind"});
    waiting.join();
    planes[size_t(quitter)].reset();
    shrinkAll(planes, without(4, {quitter}));
  }
}

TEST(Shrink, TwoThreadsInItAtOnceAreTold) {
  const auto planes = joinAll(2);
  std::vector<Thrown> thrown(2);
  std::counting_semaphore<2> ended(0);
  std::thread other([&] {
    ended.acquire();  // the one that is turned away
    EXPECT_NO_THROW(planes[1]->shrink(like(1)));
  });
  inThreads(2, [&](int i) {
    thrown[size_t(i)] = thrownBy([&] { planes[0]->shrink(like(0)); });
    ended.release();
  });
  other.join();
  EXPECT_EQ(std::minmax({thrown[0].code, thrown[1].code}), std::minmax({0, codeOf(ErrorCode::kInvalidUsage)}));
}

// --- with a list of ranks to leave out ---

// All but `leftOut` shrink without those.
Planes shrinkWithout(const Planes& planes, const std::set<int>& leftOut) {
  const std::vector<int> list(leftOut.begin(), leftOut.end());
  Planes fresh(planes.size());
  inThreads(int(planes.size()), [&](int r) {
    if (!planes[size_t(r)] || leftOut.contains(r)) return;
    fresh[size_t(r)] = planes[size_t(r)]->shrink(like(r), list);
    expectWorks(*fresh[size_t(r)], r, without(int(planes.size()), leftOut));
  });
  return fresh;
}

Thrown shrinkFails(const Planes& planes, int rank, const std::vector<int>& leftOut, Deadline deadline = soon()) {
  return thrownBy([&] { planes[size_t(rank)]->shrink(like(rank, deadline), leftOut); });
}

TEST(ShrinkLeavingOut, AnyOfThemThoughTheyLiveAndDoNotCall) {
  for (const std::set<int>& leftOut : {std::set{0}, {1}, {5}, {0, 1}, {0, 2, 4}, {1, 2, 3, 4, 5}}) {
    const auto planes = joinAll(6);
    const auto fresh = shrinkWithout(planes, leftOut);
    inThreads(6, [&](int r) { planes[size_t(r)]->allGather({}, soon()); });  // the old one stays as it was
    for (const auto& plane : planes) EXPECT_FALSE(plane->failed());
  }
}

TEST(ShrinkLeavingOut, WhoCallsAllTheSameIsTold) {
  for (const int outcast : {0, 3}) {
    const auto planes = joinAll(4);
    std::thread calls([&] {
      const Thrown thrown = shrinkFails(planes, outcast, {});
      EXPECT_EQ(thrown.code, codeOf(ErrorCode::kRemote)) << thrown.text;
      EXPECT_NE(thrown.text.find(fmt::format("leftOut of tuttiCommShrink names rank {}", outcast)), std::string::npos)
          << thrown.text;
    });
    const auto fresh = shrinkWithout(planes, {outcast});
    calls.join();
    const Thrown late = shrinkFails(planes, outcast, {});
    EXPECT_EQ(late.code, codeOf(ErrorCode::kRemote)) << late.text;
    // It has gone for the others: a second shrink of the old plane does not wait for it.
    shrinkWithout(planes, {outcast});
    Planes rest;
    for (int r = 0; r < 4; ++r) rest.push_back(nullptr);
    inThreads(4, [&](int r) {
      if (r != outcast) rest[size_t(r)] = planes[size_t(r)]->shrink(like(r));
    });
  }
}

TEST(ShrinkLeavingOut, DeadRanksAreLeftOutListedOrNot) {
  for (const std::set<int>& leftOut : {std::set{0}, {1}, {2, 4}}) {
    Job job = joinWithVictims(5, {2});
    ::kill(job.pids.at(2), SIGKILL);
    std::set<int> gone = leftOut;
    gone.insert(2);
    const std::vector<int> list(leftOut.begin(), leftOut.end());
    inThreads(5, [&](int r) {
      if (gone.contains(r)) return;
      expectWorks(*job.planes[size_t(r)]->shrink(like(r), list), r, without(5, gone));
    });
    exitOf(job.pids.at(2));
  }
}

// It may be stopped, and nobody finds that out by waiting for its heartbeat.
TEST(ShrinkLeavingOut, AStoppedRankIsNotAsked) {
  for (const int victim : {0, 3}) {
    Job job = joinWithVictims(5, {victim});
    ::kill(job.pids.at(victim), SIGSTOP);
    shrinkWithout(job.planes, {victim});
    ::kill(job.pids.at(victim), SIGKILL);
    exitOf(job.pids.at(victim));
  }
}

TEST(ShrinkLeavingOut, OneThatDiesMeanwhile) {
  std::mt19937 random(11);
  for (int round = 0; round < kShrinkRounds; ++round) {
    const int size = 3 + int(random() % 5), victim = int(random() % unsigned(size));
    Job job = joinWithVictims(size, {victim});
    std::thread killer([&, after = random() % 4000] {
      std::this_thread::sleep_for(std::chrono::microseconds(after));
      ::kill(job.pids.at(victim), SIGKILL);
    });
    shrinkWithout(job.planes, {victim});
    killer.join();
    exitOf(job.pids.at(victim));
  }
}

// Each of these lists is of a rank; whoever has none does not call.
using Lists = std::vector<std::optional<std::vector<int>>>;

void expectDiffers(const Planes& planes, const Lists& lists, const std::vector<int>& delaysMs) {
  inThreads(int(planes.size()), [&](int r) {
    if (!lists[size_t(r)]) return;
    std::this_thread::sleep_for(milliseconds(delaysMs[size_t(r)]));
    const Thrown thrown = shrinkFails(planes, r, *lists[size_t(r)]);
    EXPECT_EQ(thrown.code, codeOf(ErrorCode::kInvalidUsage)) << r << ": " << thrown.text;
    EXPECT_NE(thrown.text.find("the ranks disagree on whom to leave out: rank "), std::string::npos) << thrown.text;
    EXPECT_NE(thrown.text.find(" (leftOut of tuttiCommShrink), rank "), std::string::npos) << thrown.text;
  });
}

TEST(ShrinkLeavingOut, ListsThatDifferFailForAllWhoCallAndThenGoOn) {
  const Lists cases[] = {
      {std::vector<int>{}, {{3}}, {{3}}, std::nullopt},
      {{{3}}, {{3}}, std::vector<int>{}, std::nullopt},
      {std::nullopt, {{0}}, std::vector<int>{}, std::vector<int>{}},
      {std::nullopt, {{0}}, {{0}}, std::vector<int>{}},
      {std::nullopt, std::vector<int>{}, std::vector<int>{}, {{0}}},
      {std::vector<int>{}, std::vector<int>{}, {{4}}, std::vector<int>{}, std::nullopt},
      {{{1}}, std::nullopt, {{1, 4}}, {{1}}, std::nullopt},
  };
  std::mt19937 random(12);
  for (const Lists& lists : cases) {
    const int size = int(lists.size());
    for (int round = 0; round < 4; ++round) {
      const auto planes = joinAll(size);
      std::vector<int> delays(lists.size());
      for (int& delay : delays) delay = int(random() % 3) * 30;
      if (round == 0) std::fill(delays.begin(), delays.end(), 0);
      expectDiffers(planes, lists, delays);
      std::set<int> absent;
      for (int r = 0; r < size; ++r)
        if (!lists[size_t(r)]) absent.insert(r);
      shrinkWithout(planes, absent);
    }
  }
}

TEST(ShrinkLeavingOut, WhoComesAfterTheOthersHaveDifferedHearsOfIt) {
  const auto planes = joinAll(4);
  expectDiffers(planes, {std::nullopt, {{0, 3}}, {{3}}, std::nullopt}, {0, 0, 0, 0});
  // It is called in the background.
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(shrinkFails(planes, 0, {3}).code, codeOf(ErrorCode::kInvalidUsage));
  shrinkWithout(planes, {3});
}

// A rank that was stopped, given up, and comes back finds that the others have gone on.
TEST(Shrink, LeavesASilentRankOut) {
  for (const int victim : {0, 2}) {
    Job job = joinWithVictims(5, {victim}, int(kHeartbeat.count()), "outcast");
    const pid_t pid = job.pids.at(victim);
    ::kill(pid, SIGSTOP);
    inThreads(5, [&](int r) {
      if (r != victim) awaitFrom([&] { return job.planes[size_t(r)]->failure(); });
    });
    const auto fresh = shrinkAll(job.planes, without(5, {victim}));
    ::kill(pid, SIGCONT);
    for (const auto& plane : fresh)
      if (plane) {
        EXPECT_FALSE(plane->failed());
      }
    EXPECT_EQ(exitOf(pid), 0);
  }
}

// --- deaths while it goes on ---

// The survivors shrink, and shrink again what fails under their hands, until a plane of theirs works. Ranks that are
// killed on the way are processes; they do the same until their end comes.
void expectEndsTogether(Job& job, const std::vector<int>& survivors, int heartbeatMs) {
  inThreads(int(job.planes.size()), [&](int r) {
    if (!job.planes[size_t(r)]) return;
    auto plane = std::move(job.planes[size_t(r)]);
    std::vector<int> names;
    for (int attempt = 0; attempt < 20; ++attempt) {
      plane = plane->shrink(like(r, soon(), heartbeatMs));
      names = membersOf(*plane);
      if (names == survivors) break;
      awaitFrom([&] { return plane->failure(); });  // someone in it was killed, or will be
    }
    EXPECT_EQ(names, survivors) << "as old rank " << r << " sees it";
    plane->allGather(toBytes("end"), soon());
  });
}

struct Blow {
  int signal = SIGKILL;
  int heartbeatMs = 20000;
  std::vector<double>* times = nullptr;
};
void print(const char* what, std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  std::printf("%s: median %.1f ms, most %.1f ms, %zu times\n", what, times[times.size() / 2], times.back(),
              times.size());
}
void killDuring(int size, const std::set<int>& first, const std::set<int>& second, int afterUs, Blow blow = {}) {
  std::set<int> all = first;
  all.insert(second.begin(), second.end());
  const UniqueId id = openRoot({}, soon());
  Job job;
  for (const int victim : all)
    job.pids[victim] = startRank({id, victim, size, first.contains(victim) ? "wait" : "shrink", blow.heartbeatMs, {}});
  job.planes.resize(size_t(size));
  inThreads(size, [&](int r) {
    if (all.contains(r)) return;
    JoinRequest request = requestFor(id, r, size);
    request.heartbeat = milliseconds(blow.heartbeatMs);
    job.planes[size_t(r)] = joinPlane(request);
    for (const int victim : all) awaitMail(*job.planes[size_t(r)], victim, kReadyKey);
  });
  for (const int victim : first) ::kill(job.pids[victim], SIGKILL);
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::microseconds(afterUs));
    for (const int victim : second) ::kill(job.pids.at(victim), blow.signal);
  });
  const auto start = Clock::now();
  expectEndsTogether(job, without(size, all), blow.heartbeatMs);
  if (blow.times != nullptr) blow.times->push_back(msSince(start));
  killer.join();
  for (const auto& [rank, pid] : job.pids) ::kill(pid, SIGKILL), exitOf(pid);
}

TEST(Shrink, SurvivesASecondDeathAtAnyMoment) {
  std::mt19937 random(5);
  for (int round = 0; round < 3 * kShrinkRounds; ++round) {
    const int size = 3 + int(random() % 7);
    const int first = int(random() % unsigned(size)), second = (first + 1 + int(random() % unsigned(size - 1))) % size;
    killDuring(size, {first}, {second}, int(random() % 8000));
  }
}

// The leader of the shrink, who holds the new root as well, and then the next one.
TEST(Shrink, SurvivesTheDeathOfItsLeaders) {
  std::vector<double> times;
  std::mt19937 random(6);
  for (int round = 0; round < 2 * kShrinkRounds; ++round) {
    const int size = 4 + int(random() % 6);
    killDuring(size, {size - 1}, {0}, int(random() % 6000), {SIGKILL, 20000, &times});
    killDuring(size, {1}, {0, 2}, int(random() % 6000), {SIGKILL, 20000, &times});
  }
  print("to a plane of those who are left, with leaders dying on the way", times);
}

TEST(Shrink, SurvivesAStopDuringIt) {
  std::mt19937 random(9);
  for (int round = 0; round < (kShrinkRounds + 5) / 6; ++round)
    killDuring(5, {3}, {int(random() % 3)}, int(random() % 6000), {SIGSTOP, int(kHeartbeat.count())});
}

TEST(Shrink, LeavesNoDescriptorsAndNoThreadsBehind) {
  const auto settled = [](int before, int (*count)()) {
    for (int i = 0; i < 500 && count() > before; ++i) std::this_thread::sleep_for(milliseconds(20));
    return count();
  };
  killAndShrink(3, {1});
  settled(0, [] { return runningThreads() > 6 ? 1 : 0; });
  const int descriptors = openDescriptors(), threads = runningThreads();
  for (int i = 0; i < 4; ++i) {
    killAndShrink(6, {i, 5});
    killDuring(6, {2}, {0}, 1000 * i, {SIGKILL, 2000});  // who has lost its leader stays for a while to be asked
  }
  EXPECT_LE(settled(descriptors, openDescriptors), descriptors);
  EXPECT_LE(settled(threads, runningThreads), threads);
}

}  // namespace
}  // namespace tutti::control::test

// Communicators that are made together, at the end of a group.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/makings.h"

namespace {

using namespace tutti::test;

class GroupMakingOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, GroupMakingOf, testing::Values(2, 4));

TEST_P(GroupMakingOf, OneThreadJoinsSplitsAndShrinksAllRanks) {
  const int ranks = GetParam();
  const auto count = static_cast<size_t>(ranks);
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const tuttiConfig_t config = testConfig();
  std::vector<tuttiComm_t> comms(count), halves(count), survivors(count);
  EXPECT_EQ(groupOf([&] {
              for (int r = 0; r < ranks; ++r)
                CHECK_TUTTI(tuttiCommInitRankConfig(&comms[static_cast<size_t>(r)], ranks, id, r, &config));
              for (const tuttiComm_t comm : comms) {
                int rank = 0;
                EXPECT_EQ(tuttiCommUserRank(comm, &rank), tuttiInvalidUsage);
                expectWords(tuttiGetLastError(nullptr), {"is of a group that has not ended", "after tuttiGroupEnd"});
              }
            }),
            tuttiSuccess)
      << tuttiGetLastError(nullptr);
  expectWorks(comms, ranks);
  EXPECT_EQ(groupOf([&] {
              for (size_t r = 0; r < count; ++r)
                CHECK_TUTTI(tuttiCommSplit(comms[r], static_cast<int>(r) % 2, 0, &halves[r], nullptr));
            }),
            tuttiSuccess)
      << tuttiGetLastError(nullptr);
  expectWorks(halves, ranks / 2);
  destroyEach(halves);
  EXPECT_EQ(groupOf([&] {
              for (size_t r = 0; r < count; ++r)
                CHECK_TUTTI(tuttiCommShrink(comms[r], nullptr, 0, &survivors[r], nullptr, 0));
            }),
            tuttiSuccess)
      << tuttiGetLastError(nullptr);
  expectWorks(survivors, ranks);
  destroyEach(survivors);
  destroyEach(comms);
}

TEST_P(GroupMakingOf, OneThreadHasRanksOfSeveralCommunicators) {
  const int ranks = GetParam();
  const auto count = static_cast<size_t>(ranks);
  std::vector<tuttiComm_t> all(count), some(count);
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  EXPECT_EQ(groupOf([&] {
              CHECK_TUTTI(tuttiGroupStart());  // nested: the inner end makes nothing
              CHECK_TUTTI(tuttiCommInitAll(all.data(), ranks, nullptr));
              CHECK_TUTTI(tuttiGroupEnd());
              int rank = 0;
              EXPECT_EQ(tuttiCommUserRank(all[0], &rank), tuttiInvalidUsage);
              for (int r = ranks - 1; r >= 0; --r)
                CHECK_TUTTI(tuttiCommInitRank(&some[static_cast<size_t>(r)], ranks, id, r));
            }),
            tuttiSuccess)
      << tuttiGetLastError(nullptr);
  expectWorks(all, ranks);
  expectWorks(some, ranks);
  destroyEach(all);
  destroyEach(some);
}

TEST(GroupMaking, NonBlockingOnesGoOn) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const tuttiConfig_t config = inBackground();
  std::vector<tuttiComm_t> comms(2), children(2);
  EXPECT_EQ(groupOf([&] {
              for (int r = 0; r < 2; ++r)
                CHECK_TUTTI(tuttiCommInitRankConfig(&comms[static_cast<size_t>(r)], 2, id, r, &config));
            }),
            tuttiInProgress);
  for (const tuttiComm_t comm : comms) EXPECT_EQ(outcomeOf(comm), tuttiSuccess);
  EXPECT_EQ(groupOf([&] {
              for (size_t r = 0; r < 2; ++r) CHECK_TUTTI(tuttiCommSplit(comms[r], 0, 0, &children[r], nullptr));
            }),
            tuttiInProgress);
  for (const tuttiComm_t child : children) EXPECT_EQ(outcomeOf(child), tuttiSuccess);
  expectWorks(children, 2);
  destroyEach(children);
  destroyEach(comms);
}

tuttiComm_t newStray() {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiComm_t stray = nullptr, bad = nullptr;
  groupOf([&] {
    CHECK_TUTTI(tuttiCommInitRank(&stray, 2, id, 0));
    EXPECT_EQ(tuttiCommInitRank(&bad, 2, id, 2), tuttiInvalidArgument);
  });
  return stray;
}

// A call that is refused is inside for a moment.
TEST(GroupMaking, AStrayEndsThoughAnotherThreadTriesToUseIt) {
  for (const auto end : {tuttiCommAbort, tuttiCommDestroy})
    for (int i = 0; i < 200; ++i) {
      const tuttiComm_t stray = newStray();
      std::atomic<int> tries{0};
      std::atomic<bool> over{false};
      std::thread other([&] {
        for (; !over; ++tries) EXPECT_NE(tuttiBarrier(stray, nullptr), tuttiSuccess);
      });
      while (tries < 10) std::this_thread::yield();
      EXPECT_EQ(end(stray), tuttiSuccess);
      over = true;
      other.join();
      EXPECT_EQ(tuttiBarrier(stray, nullptr), tuttiInvalidArgument);
      expectWords(tuttiGetLastError(nullptr), {"was destroyed"});
    }
}

TEST(GroupMaking, ASpoiledGroupMakesNothing) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const auto parents = newRanks(2);
  tuttiComm_t good = nullptr, bad = nullptr, child = nullptr;
  EXPECT_EQ(groupOf([&] {
              CHECK_TUTTI(tuttiCommInitRank(&good, 2, id, 0));
              CHECK_TUTTI(tuttiCommSplit(parents[0], 0, 0, &child, nullptr));
              EXPECT_EQ(tuttiCommInitRank(&bad, 2, id, 2), tuttiInvalidArgument);
            }),
            tuttiInvalidArgument);
  expectWords(tuttiGetLastError(nullptr), {"tuttiCommInitRank: rank is 2"});
  EXPECT_EQ(bad, nullptr);
  for (const tuttiComm_t stray : {good, child}) {
    EXPECT_EQ(outcomeOf(stray), tuttiInvalidArgument);
    expectWords(tuttiGetLastError(stray), {"the group made nothing: tuttiCommInitRank: rank is 2"});
  }
  expectWords(tuttiGetLastError(parents[0]), {"the group made nothing: tuttiCommInitRank: rank is 2"});
  CHECK_TUTTI(tuttiCommDestroy(good));
  CHECK_TUTTI(tuttiCommAbort(child));
  expectWorks(parents, 2);
  destroyEach(parents);
}

TEST(GroupMaking, ARankThatDoesNotComeEndsItAtTheDeadline) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiConfig_t config = testConfig();
  config.joinTimeoutMs = 1000;
  std::vector<tuttiComm_t> whole(2), lacking(2);
  EXPECT_EQ(groupOf([&] {
              CHECK_TUTTI(tuttiCommInitAll(whole.data(), 2, nullptr));
              for (int r = 0; r < 2; ++r)
                CHECK_TUTTI(tuttiCommInitRankConfig(&lacking[static_cast<size_t>(r)], 3, id, r, &config));
            }),
            tuttiTimeout);
  expectWords(tuttiGetLastError(nullptr), {"tuttiGroupEnd: tuttiCommInitRankConfig (rank ", "missing: rank 2"});
  expectWorks(whole, 2);
  destroyEach(whole);
  for (const tuttiComm_t stray : lacking) {
    EXPECT_EQ(outcomeOf(stray), tuttiTimeout);
    CHECK_TUTTI(tuttiCommDestroy(stray));
  }
}

TEST(GroupMaking, AJoinThatWasAbortedBeforeTheEndFailsForAll) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const tuttiConfig_t config = testConfig();
  std::vector<tuttiComm_t> comms(3);
  EXPECT_EQ(groupOf([&] {
              for (int r = 0; r < 3; ++r)
                CHECK_TUTTI(tuttiCommInitRankConfig(&comms[static_cast<size_t>(r)], 3, id, r, &config));
              CHECK_TUTTI(tuttiCommAbort(comms[1]));
            }),
            tuttiRemoteError);
  for (const size_t r : {0, 2}) {
    EXPECT_EQ(outcomeOf(comms[r]), tuttiRemoteError);
    CHECK_TUTTI(tuttiCommAbort(comms[r]));
  }
}

TEST(GroupMaking, AnAbortEndsTheWait) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const tuttiConfig_t config = testConfig();
  tuttiComm_t comm = nullptr;
  std::atomic<bool> published{false};
  std::thread striker([&] {
    published.wait(false);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for the other to get to its wait, as a rule
    CHECK_TUTTI(tuttiCommAbort(comm));
  });
  EXPECT_EQ(groupOf([&] {
              CHECK_TUTTI(tuttiCommInitRankConfig(&comm, 2, id, 0, &config));
              published = true;
              published.notify_one();
            }),
            tuttiRemoteError);
  expectWords(tuttiGetLastError(nullptr), {"tuttiCommInitRankConfig (rank 0)", "it was aborted"});
  striker.join();
}

// What is aborted before the group ends is told to those who wait for it.
TEST(GroupMaking, OneThatWasAbortedBeforeTheEndFails) {
  const auto parents = newRanks(2);
  tuttiComm_t child = nullptr, other = nullptr;
  EXPECT_EQ(groupOf([&] {
              CHECK_TUTTI(tuttiCommSplit(parents[0], 0, 0, &child, nullptr));
              CHECK_TUTTI(tuttiCommAbort(child));
              tuttiResult_t state = tuttiInternalError;
              CHECK_TUTTI(tuttiCommGetAsyncError(parents[1], &state));
              EXPECT_EQ(state, tuttiSuccess);
            }),
            tuttiRemoteError);
  EXPECT_EQ(tuttiCommSplit(parents[1], 0, 0, &other, nullptr), tuttiRemoteError);
  expectWords(tuttiGetLastError(nullptr), {"rank 0 (", "called tuttiCommAbort"});
  destroyEach(parents);
}

TEST(GroupMaking, OperationsOnOthersGoBesideIt) {
  const auto comms = newRanks(2);
  std::vector<tuttiComm_t> made(2), children(2);
  std::vector<int> values(2, 1);
  EXPECT_EQ(groupOf([&] {
              for (size_t r = 0; r < 2; ++r)
                CHECK_TUTTI(tuttiAllReduce(&values[r], &values[r], 1, tuttiInt32, tuttiSum, comms[r], nullptr));
              CHECK_TUTTI(tuttiCommInitAll(made.data(), 2, nullptr));
            }),
            tuttiSuccess)
      << tuttiGetLastError(nullptr);
  EXPECT_EQ(values, std::vector<int>(2, 2));
  expectWorks(made, 2);
  // But not on what is split.
  EXPECT_EQ(groupOf([&] {
              for (size_t r = 0; r < 2; ++r)
                CHECK_TUTTI(tuttiAllReduce(&values[r], &values[r], 1, tuttiInt32, tuttiSum, comms[r], nullptr));
              for (size_t r = 0; r < 2; ++r) CHECK_TUTTI(tuttiCommSplit(comms[r], 0, 0, &children[r], nullptr));
            }),
            tuttiInvalidUsage);
  expectWords(tuttiGetLastError(nullptr), {"a tuttiCommSplit and operations on the same communicator (rank 0)"});
  destroyEach(children);
  EXPECT_EQ(groupOf([&] {
              CHECK_TUTTI(tuttiCommSplit(comms[0], 0, 0, &children[0], nullptr));
              EXPECT_EQ(tuttiBarrier(comms[0], nullptr), tuttiInvalidUsage);
            }),
            tuttiInvalidUsage);
  expectWords(tuttiGetLastError(nullptr),
              {"a split, duplicate, shrink or grow of this communicator (rank 0) is under way"});
  CHECK_TUTTI(tuttiCommDestroy(children[0]));
  expectWorks(comms, 2);
  destroyEach(made);
  destroyEach(comms);
}

TEST(GroupMaking, AGroupThatIsNeverEndedLeavesStrays) {
  const auto parents = newRanks(2);
  tuttiComm_t child = nullptr;
  std::thread([&] {
    CHECK_TUTTI(tuttiGroupStart());
    CHECK_TUTTI(tuttiCommSplit(parents[0], 0, 0, &child, nullptr));
  }).join();
  EXPECT_EQ(outcomeOf(child), tuttiInvalidUsage);
  expectWords(tuttiGetLastError(child), {"was never ended"});
  CHECK_TUTTI(tuttiCommDestroy(child));
  expectWorks(parents, 2);
  destroyEach(parents);
}

TEST(GroupMaking, ManyThreadsAtOnce) {
  constexpr int kThreads = 6, kOfEach = 2, kRanks = kThreads * kOfEach;
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const tuttiConfig_t config = testConfig();
  runRanks(kThreads, [&](int thread) {
    std::vector<tuttiComm_t> comms(kOfEach), children(kOfEach);
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(groupOf([&] {
                  for (int i = 0; i < kOfEach; ++i) {
                    const auto at = static_cast<size_t>(i);
                    const int rank = thread + i * kThreads;
                    if (round == 0)
                      CHECK_TUTTI(tuttiCommInitRankConfig(&comms[at], kRanks, id, rank, &config));
                    else
                      CHECK_TUTTI(tuttiCommSplit(comms[at], rank % 3, rank, &children[at], nullptr));
                  }
                }),
                tuttiSuccess)
          << tuttiGetLastError(nullptr);
      if (round == 0) continue;
      expectWorks(children, kRanks / 3);
      destroyEach(children);
    }
    destroyEach(comms);
  });
}

TEST(GroupMaking, ReadsTheEnvironmentAtTheCall) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  std::vector<tuttiComm_t> comms(2);
  EXPECT_EQ(groupOf([&] {
              for (int r = 0; r < 2; ++r) {
                const std::string value = r == 0 ? "2" : "1";
                ::setenv("TUTTI_GROUP_SIZE", value.c_str(), 1);
                CHECK_TUTTI(tuttiCommInitRank(&comms[static_cast<size_t>(r)], 2, id, r));
                ::unsetenv("TUTTI_GROUP_SIZE");
              }
            }),
            tuttiInvalidUsage);
  expectWords(tuttiGetLastError(nullptr), {"TUTTI_GROUP_SIZE is ", "2 on rank 0 (", "1 on rank 1 ("});
  destroyEach(comms);
}

}  // namespace

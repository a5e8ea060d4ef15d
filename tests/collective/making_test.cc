// Communicators that are made of others in the background, and those that are made together at the end of a group.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/api_ranks.h"

namespace {

using namespace tutti::test;

void expectWords(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

int sumOfOnes(tuttiComm_t comm) {
  int value = 1;
  CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
  return value;
}

// All ranks of one communicator, driven by this thread: a group for what they do together.
template <class Body>
tuttiResult_t groupOf(Body body) {
  CHECK_TUTTI(tuttiGroupStart());
  body();
  return tuttiGroupEnd();
}

void expectWorks(const std::vector<tuttiComm_t>& comms, int sum) {
  std::vector<int> values(comms.size(), 1);
  EXPECT_EQ(groupOf([&] {
              for (size_t i = 0; i < comms.size(); ++i)
                CHECK_TUTTI(tuttiAllReduce(&values[i], &values[i], 1, tuttiInt32, tuttiSum, comms[i], nullptr));
            }),
            tuttiSuccess)
      << tuttiGetLastError(nullptr);
  EXPECT_EQ(values, std::vector<int>(comms.size(), sum));
}

void destroyEach(const std::vector<tuttiComm_t>& comms) {
  for (const tuttiComm_t comm : comms) CHECK_TUTTI(tuttiCommDestroy(comm));
}

std::vector<tuttiComm_t> newRanks(int ranks) {
  std::vector<tuttiComm_t> comms(static_cast<size_t>(ranks));
  CHECK_TUTTI(tuttiCommInitAll(comms.data(), ranks, nullptr));
  return comms;
}

// Blocking, in the background, or in a group.
TEST(Making, WhatFailsLeavesTheHandleAsItWas) {
  const tuttiUniqueId noId{};
  tuttiConfig_t wrong = TUTTI_CONFIG_INITIALIZER;
  wrong.transports = "smoke";
  const tuttiComm_t before = reinterpret_cast<tuttiComm_t>(&wrong);
  const auto expectUntouched = [&](const auto& call) {
    std::array<tuttiComm_t, 2> made{before, before};
    EXPECT_NE(call(made.data()), tuttiSuccess);
    EXPECT_NE(groupOf([&] { EXPECT_NE(call(made.data()), tuttiSuccess); }), tuttiSuccess);
    EXPECT_EQ(made, (std::array{before, before}));
  };
  for (wrong.nonBlocking = 0; wrong.nonBlocking < 2; ++wrong.nonBlocking) {
    const auto parents = newRanks(1);
    expectUntouched([&](auto made) { return tuttiCommInitRank(made, 2, noId, 0); });
    expectUntouched([&](auto made) { return tuttiCommInitRankConfig(made, 2, noId, 0, &wrong); });
    expectUntouched([&](auto made) { return tuttiCommInitEnv(made, &wrong); });
    expectUntouched([&](auto made) { return tuttiCommInitAllConfig(made, 2, nullptr, &wrong); });
    expectUntouched([&](auto made) { return tuttiCommShrink(parents[0], nullptr, 0, made, &wrong, 0); });
    expectUntouched([&](auto made) { return tuttiCommGrow(parents[0], 2, nullptr, 0, made, nullptr); });
    expectUntouched([&](auto made) { return tuttiCommGrow(nullptr, 2, &noId, 1, made, nullptr); });
    expectUntouched([&](auto made) { return tuttiCommSplit(parents[0], -7, 0, made, nullptr); });
    expectUntouched([&](auto made) { return tuttiCommDuplicate(parents[0], made, &wrong); });
    destroyEach(parents);
  }
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiConfig_t brief = TUTTI_CONFIG_INITIALIZER;
  brief.joinTimeoutMs = 1;
  tuttiComm_t alone = before;
  EXPECT_EQ(tuttiCommInitRankConfig(&alone, 2, id, 0, &brief), tuttiTimeout);
  EXPECT_EQ(alone, before);
}

// ---- In the background --------------------------------------------------------------------------------------------

TEST(BackgroundMaking, ASplitGoesOnAndTheParentIsOccupied) {
  const tuttiConfig_t config = inBackground();
  const auto parents = newRanks(2);
  std::vector<tuttiComm_t> children(2);
  EXPECT_EQ(tuttiCommSplit(parents[0], 0, 0, &children[0], &config), tuttiInProgress);
  ASSERT_NE(children[0], nullptr);
  int rank = -1;
  EXPECT_EQ(tuttiCommUserRank(parents[0], &rank), tuttiInvalidUsage);
  expectWords(tuttiGetLastError(parents[0]),
              {"tuttiCommUserRank: a split, duplicate, shrink or grow", "(rank 0) is under way"});
  EXPECT_EQ(tuttiCommDestroy(parents[0]), tuttiInvalidUsage);
  EXPECT_EQ(tuttiCommUserRank(children[0], &rank), tuttiInvalidUsage);
  expectWords(tuttiGetLastError(children[0]), {"comm (rank 0 of its parent) is still joining"});
  tuttiResult_t state = tuttiSuccess;
  CHECK_TUTTI(tuttiCommGetAsyncError(parents[0], &state));
  EXPECT_EQ(state, tuttiInProgress);
  EXPECT_EQ(tuttiCommSplit(parents[1], 0, -1, &children[1], &config), tuttiInProgress);
  for (const tuttiComm_t child : children) EXPECT_EQ(outcomeOf(child), tuttiSuccess) << tuttiGetLastError(child);
  CHECK_TUTTI(tuttiCommUserRank(children[0], &rank));
  EXPECT_EQ(rank, 1) << "by its key";
  expectWorks(children, 2);
  expectWorks(parents, 2);
  destroyEach(parents);
  expectWorks(children, 2);
  destroyEach(children);
}

TEST(BackgroundMaking, IsInheritedAndARankWithoutAColourTakesPart) {
  const tuttiConfig_t config = inBackground();
  std::vector<tuttiComm_t> parents(3), children(3);
  EXPECT_EQ(tuttiCommInitAllConfig(parents.data(), 3, nullptr, &config), tuttiInProgress);
  for (const tuttiComm_t comm : parents) EXPECT_EQ(outcomeOf(comm), tuttiSuccess);
  for (int r = 0; r < 3; ++r) {
    const auto at = static_cast<size_t>(r);
    EXPECT_EQ(tuttiCommSplit(parents[at], r == 2 ? TUTTI_SPLIT_NOCOLOR : 0, 0, &children[at], nullptr),
              tuttiInProgress);
    EXPECT_EQ(children[at] == nullptr, r == 2);
  }
  EXPECT_EQ(outcomeOf(parents[2]), tuttiSuccess) << "its part is over";
  children.pop_back();
  for (const tuttiComm_t child : children) EXPECT_EQ(outcomeOf(child), tuttiSuccess);
  expectWorks(children, 2);
  expectWorks(parents, 3);
  const tuttiConfig_t blocking = testConfig();
  runRanks(2, [&](int r) {
    tuttiComm_t grandchild = nullptr;
    CHECK_TUTTI(tuttiCommSplit(children[static_cast<size_t>(r)], 0, 0, &grandchild, &blocking));
    EXPECT_EQ(sumOfOnes(grandchild), 2);
    CHECK_TUTTI(tuttiCommDestroy(grandchild));
  });
  destroyEach(children);
  destroyEach(parents);
}

TEST(BackgroundMaking, AShrinkGoesOn) {
  const tuttiConfig_t config = inBackground();
  auto parents = newRanks(3);
  CHECK_TUTTI(tuttiCommAbort(parents[1]));
  const std::vector<tuttiComm_t> left = {parents[0], parents[2]};
  std::vector<tuttiComm_t> children(2);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(tuttiCommShrink(left[i], nullptr, 0, &children[i], &config, 0), tuttiInProgress);
  for (const tuttiComm_t child : children) EXPECT_EQ(outcomeOf(child), tuttiSuccess) << tuttiGetLastError(child);
  expectWorks(children, 2);
  destroyEach(left);
  destroyEach(children);
}

// A struct of a program that was made before the last field was there.
TEST(BackgroundMaking, IsAskedForByShorterStructsToo) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiConfig_t config = inBackground();
  config.size = offsetof(tuttiConfig_t, nonBlocking) + sizeof config.nonBlocking;
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), tuttiInProgress);
  EXPECT_EQ(outcomeOf(comm), tuttiSuccess);
  CHECK_TUTTI(tuttiCommDestroy(comm));
}

// Ends a split or shrink that one rank never comes to.
void expectEnds(bool shrinks, const std::function<void(tuttiComm_t parent, tuttiComm_t child)>& end,
                std::initializer_list<const char*> words) {
  tuttiConfig_t config = inBackground();
  config.joinTimeoutMs = 600'000;
  const auto parents = newRanks(2);
  tuttiComm_t child = nullptr;
  const tuttiResult_t result = shrinks ? tuttiCommShrink(parents[0], nullptr, 0, &child, &config, 0)
                                       : tuttiCommSplit(parents[0], 0, 0, &child, &config);
  EXPECT_EQ(result, tuttiInProgress);
  std::thread([&] { end(parents[0], child); }).join();
  tuttiResult_t state = tuttiInProgress;
  while (state == tuttiInProgress && tuttiCommGetAsyncError(child, &state) == tuttiSuccess) std::this_thread::yield();
  if (state != tuttiSuccess) {
    EXPECT_EQ(state, tuttiRemoteError);
    expectWords(tuttiGetLastError(child), words);
  }
  // The other rank hears of it, and does not come to wait.
  tuttiComm_t other = nullptr;
  if (!shrinks) {
    EXPECT_EQ(tuttiCommSplit(parents[1], 0, 0, &other, nullptr), tuttiRemoteError);
  }
  for (const tuttiComm_t comm : {parents[0], parents[1], child}) tuttiCommAbort(comm);
}

TEST(BackgroundMaking, AnAbortOfTheChildEndsIt) {
  const auto abortChild = [](tuttiComm_t, tuttiComm_t child) { CHECK_TUTTI(tuttiCommAbort(child)); };
  for (const bool shrinks : {false, true}) expectEnds(shrinks, abortChild, {"called tuttiCommAbort"});
}

TEST(BackgroundMaking, ARevokeOfTheChildEndsIt) {
  const auto revokeChild = [](tuttiComm_t, tuttiComm_t child) { CHECK_TUTTI(tuttiCommRevoke(child, 0)); };
  for (const bool shrinks : {false, true})
    expectEnds(shrinks, revokeChild, {"rank 0 of its parent stopped joining: it was revoked"});
}

TEST(BackgroundMaking, WhoWaitsHearsHowItWasGivenUp) {
  const tuttiConfig_t config = inBackground();
  const std::pair<tuttiResult_t (*)(tuttiComm_t), const char*> ways[] = {
      {tuttiCommAbort, "called tuttiCommAbort"},
      {[](tuttiComm_t child) { return tuttiCommRevoke(child, 0); }, "revoked the communicator"}};
  for (const auto& [giveUp, words] : ways)
    for (const bool shrinks : {false, true}) {
      const auto parents = newRanks(3);  // rank 2 never comes
      std::vector<tuttiComm_t> children(2);
      for (const size_t r : {0, 1})
        EXPECT_EQ(shrinks ? tuttiCommShrink(parents[r], nullptr, 0, &children[r], &config, 0)
                          : tuttiCommSplit(parents[r], 0, 0, &children[r], &config),
                  tuttiInProgress);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for both to get to their wait, as a rule
      CHECK_TUTTI(giveUp(children[1]));
      EXPECT_EQ(outcomeOf(children[0]), tuttiRemoteError);
      expectWords(tuttiGetLastError(children[0]), {"rank 1 (", words});
      tuttiCommAbort(children[0]);
      if (giveUp != tuttiCommAbort) tuttiCommAbort(children[1]);
      for (const tuttiComm_t parent : parents) tuttiCommAbort(parent);
    }
}

TEST(BackgroundMaking, AnAbortOrARevokeOfTheParentEndsIt) {
  const auto abortParent = [](tuttiComm_t parent, tuttiComm_t) { CHECK_TUTTI(tuttiCommAbort(parent)); };
  const auto revokeParent = [](tuttiComm_t parent, tuttiComm_t) { CHECK_TUTTI(tuttiCommRevoke(parent, 0)); };
  for (const bool shrinks : {false, true}) {
    expectEnds(shrinks, abortParent, {"called tuttiCommAbort"});
    // A shrink that has not begun when its parent is revoked is what follows a revoke, and goes on.
    if (!shrinks) expectEnds(shrinks, revokeParent, {"revoked"});
  }
}

// One that is given up before it has begun: a shrink goes on after a failure, but not after that.
TEST(BackgroundMaking, AShrinkIsGivenUpBeforeItHasBegun) {
  tuttiConfig_t config = inBackground();
  config.joinTimeoutMs = 600'000;
  for (const auto giveUp : {tuttiCommAbort, +[](tuttiComm_t child) { return tuttiCommRevoke(child, 0); }}) {
    const auto parents = newRanks(2);
    tuttiComm_t child = nullptr;
    groupOf([&] {
      CHECK_TUTTI(tuttiCommShrink(parents[0], nullptr, 0, &child, &config, 0));
      CHECK_TUTTI(giveUp(child));
    });
    while (tuttiCommDestroy(parents[0]) == tuttiInvalidUsage) std::this_thread::yield();  // until the shrink is over
    CHECK_TUTTI(tuttiCommDestroy(parents[1]));
    tuttiCommAbort(child);
  }
}

TEST(BackgroundMaking, ARevokedJoinIsAStray) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const tuttiConfig_t config = inBackground();
  tuttiComm_t comm = nullptr;
  EXPECT_EQ(tuttiCommInitRankConfig(&comm, 2, id, 1, &config), tuttiInProgress);
  CHECK_TUTTI(tuttiCommRevoke(comm, 0));
  EXPECT_EQ(outcomeOf(comm), tuttiRemoteError);
  EXPECT_STREQ(tuttiGetLastError(comm), "rank 1 stopped joining: it was revoked");
  CHECK_TUTTI(tuttiCommDestroy(comm));
}

TEST(BackgroundMaking, AFailureIsToldByTheChildAndByTheParent) {
  tuttiConfig_t config = inBackground();
  config.joinTimeoutMs = 200;
  const auto parents = newRanks(2);
  tuttiComm_t child = nullptr;
  EXPECT_EQ(tuttiCommSplit(parents[0], 0, 0, &child, &config), tuttiInProgress);
  EXPECT_EQ(outcomeOf(child), tuttiTimeout);
  expectWords(tuttiGetLastError(child), {"TUTTI_JOIN_TIMEOUT_MS"});
  EXPECT_EQ(outcomeOf(parents[0]), tuttiTimeout) << "as everybody who would wait for it hears";
  while (outcomeOf(parents[1]) == tuttiSuccess) std::this_thread::yield();  // until it has heard
  EXPECT_EQ(outcomeOf(parents[1]), tuttiTimeout);
  CHECK_TUTTI(tuttiCommDestroy(child));
  destroyEach(parents);
}

TEST(BackgroundMaking, AWrongArgumentIsToldAtOnce) {
  const auto parents = newRanks(2);
  const tuttiConfig_t config = inBackground();
  tuttiComm_t child = nullptr;
  EXPECT_EQ(tuttiCommSplit(parents[0], -7, 0, &child, &config), tuttiInvalidArgument);
  EXPECT_EQ(child, nullptr);
  for (const tuttiComm_t comm : parents) CHECK_TUTTI(tuttiCommAbort(comm));
}

// Any moment of a split may be the one at which somebody gives up.
TEST(BackgroundMaking, AbortsAtAnyMomentAreSafe) {
  const tuttiConfig_t config = inBackground();
  const int rounds = static_cast<int>(60 / patience()) + 5;
  for (int round = 0; round < rounds; ++round) {
    const auto parents = newRanks(3);
    std::vector<tuttiComm_t> children(3);
    for (size_t r = 0; r < 3; ++r) EXPECT_EQ(tuttiCommSplit(parents[r], 0, 0, &children[r], &config), tuttiInProgress);
    std::this_thread::sleep_for(std::chrono::microseconds(100 * (round % 40)));
    const bool parentFirst = round % 2 == 0;
    std::thread striker([&] { tuttiCommAbort(parentFirst ? parents[1] : children[1]); });
    tuttiCommAbort(parentFirst ? children[1] : parents[1]);
    striker.join();
    for (const size_t r : {size_t{0}, size_t{2}}) {
      outcomeOf(children[r]);
      CHECK_TUTTI(tuttiCommDestroy(children[r]));
      CHECK_TUTTI(tuttiCommDestroy(parents[r]));
    }
  }
}

// ---- In groups ----------------------------------------------------------------------------------------------------

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
  config.joinTimeoutMs = 200;
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

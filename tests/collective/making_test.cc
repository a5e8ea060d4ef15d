// Communicators that are made of others in the background.
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

// What says that it is over can be relied upon: the parent is free then.
TEST(BackgroundMaking, AParentIsFreeWhenItsStateSaysSo) {
  const tuttiConfig_t config = inBackground();
  for (int round = 0; round < 20; ++round) {
    const auto parents = newRanks(2);
    tuttiComm_t child = nullptr;
    EXPECT_EQ(tuttiCommSplit(parents[0], 0, 0, &child, &config), tuttiInProgress);
    CHECK_TUTTI(tuttiCommAbort(child));
    EXPECT_EQ(outcomeOf(parents[0]), tuttiRemoteError);
    CHECK_TUTTI(tuttiCommDestroy(parents[0]));
    CHECK_TUTTI(tuttiCommAbort(parents[1]));
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

}  // namespace

// What may be read before its turn.
#include "engine/early.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/algorithm.h"

namespace tutti::engine {
namespace {

using schedule::Algorithm;
using schedule::Shape;

std::vector<Early> of(Collective collective, Algorithm algorithm, int size, int rank) {
  Shape shape;
  shape.collective = collective;
  shape.size = size;
  return earlyOf(schedule::build(algorithm, shape, rank));
}

TEST(Early, WhoOnlyReceivesMayReadAllThatIsThere) {
  EXPECT_EQ(std::ranges::count(of(Collective::kAllGather, Algorithm::kDirect, 4, 1), Early::kAlways), 3);
  EXPECT_EQ(std::ranges::count(of(Collective::kBroadcast, Algorithm::kDirect, 4, 2), Early::kAlways), 1);
  EXPECT_EQ(std::ranges::count(of(Collective::kBroadcast, Algorithm::kDirect, 4, 0), Early::kAlways), 0);
}

// What this rank still has to send lies where something is received.
TEST(Early, AnAllToAllMayWhereInputAndOutputAreApart) {
  const auto early = of(Collective::kAllToAll, Algorithm::kDirect, 4, 1);
  EXPECT_EQ(std::ranges::count(early, Early::kApart), 3);
  EXPECT_EQ(std::ranges::count(early, Early::kAlways), 0);
}

TEST(Early, WhatIsAddedUpOrPassedOnHasItsTurn) {
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kOneShot})
    for (int rank = 0; rank < 4; ++rank)
      for (const Early early :
           of(Collective::kReduce, algorithm == Algorithm::kOneShot ? Algorithm::kTree : algorithm, 4, rank))
        EXPECT_EQ(early, Early::kNever);
  // The second half of a ring is received into what the first half has written.
  for (const Early early : of(Collective::kReduceScatter, Algorithm::kRing, 4, 0)) EXPECT_EQ(early, Early::kNever);
}

std::vector<Ahead> aheadOf(Collective collective, Algorithm algorithm, int size, int rank) {
  Shape shape;
  shape.collective = collective;
  shape.size = size;
  return postsAheadOf(schedule::build(algorithm, shape, rank));
}

// Steps that post all of so many rounds at once.
std::ptrdiff_t postsEarly(Collective collective, Algorithm algorithm, int size, int rank, size_t rounds = 100) {
  return std::ranges::count_if(aheadOf(collective, algorithm, size, rank),
                               [&](const Ahead& step) { return step.roundsFrom(0, rounds) == rounds; });
}

TEST(Early, WhatIsSentStraightFromTheInputIsPostedAsFarAsThereIsRoom) {
  EXPECT_EQ(postsEarly(Collective::kAllGather, Algorithm::kDirect, 4, 1), 1);
  EXPECT_EQ(postsEarly(Collective::kBroadcast, Algorithm::kDirect, 4, 0), 1);
  EXPECT_EQ(postsEarly(Collective::kBroadcast, Algorithm::kDirect, 4, 1), 0) << "it receives";
  EXPECT_EQ(postsEarly(Collective::kAllToAll, Algorithm::kDirect, 4, 1), 3);
}

// A link that carries slots of two steps carries them in turn.
TEST(Early, LinksOfSeveralStepsKeepTheirOrder) {
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(postsEarly(Collective::kAllReduce, Algorithm::kTwoShot, 4, rank), 0);
    EXPECT_EQ(postsEarly(Collective::kAllReduce, Algorithm::kRing, 4, rank), 0);
    EXPECT_EQ(postsEarly(Collective::kAllGather, Algorithm::kRing, 4, rank), 0);
  }
}

// What is added up and the sums go over the same links, but one after the other, as long as there are no more rounds
// than iterations between them; of more, what comes before the first sum, and after all that is added up.
TEST(Early, OfTwoPassesEachIsPostedAtOnce) {
  EXPECT_EQ(postsEarly(Collective::kAllReduce, Algorithm::kTwoPass, 4, 2, 100), 3 + 1);
  EXPECT_EQ(postsEarly(Collective::kAllReduce, Algorithm::kTwoPass, 4, 2, 200), 0);
  const auto steps = aheadOf(Collective::kAllReduce, Algorithm::kTwoPass, 4, 2);
  const Ahead added = steps.front(),
              sums = *std::ranges::find_if(steps, [](const Ahead&step) { return step.after != Ahead::kAll; });
  EXPECT_EQ(added.roundsFrom(0, 200), 128U);
  EXPECT_EQ(added.roundsFrom(100, 200), 28U);
  EXPECT_EQ(added.roundsFrom(128, 200), 1U);
  EXPECT_EQ(sums.roundsFrom(0, 200), 1U);
  EXPECT_EQ(sums.roundsFrom(72, 200), 1U);
  EXPECT_EQ(sums.roundsFrom(73, 200), 127U);
}

// Who writes what is posted may write more than that.
TEST(Early, WhatIsPostedHasToBeWrittenByAStepOfSeveralSegmentsToo) {
  for (const bool isEarlier : {false, true}) {
    schedule::Schedule made;
    made.segments = 4;
    made.inPeers = made.outPeers = {1};
    made.operands = {schedule::Operand::link(0), schedule::Operand::output(), schedule::Operand::output(),
                     schedule::Operand::link(0)};
    schedule::Step writes{.fromBegin = 0, .toBegin = 1, .fromCount = 1, .toCount = 1, .segment = 3, .span = 2};
    schedule::Step posts{.fromBegin = 2, .toBegin = 3, .fromCount = 1, .toCount = 1, .segment = 0};
    posts.lag = isEarlier ? 9 : 0;
    made.steps = {writes, posts};
    const Ahead ahead = postsAheadOf(made)[1];
    EXPECT_EQ(ahead.roundsFrom(0, 5), isEarlier ? 5U : 1U);
    EXPECT_EQ(ahead.roundsFrom(0, 50), 1U);
  }
}

}  // namespace
}  // namespace tutti::engine

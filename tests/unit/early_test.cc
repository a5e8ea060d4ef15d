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

std::ptrdiff_t postsEarly(Collective collective, Algorithm algorithm, int size, int rank) {
  Shape shape;
  shape.collective = collective;
  shape.size = size;
  return std::ranges::count(postsEarlyOf(schedule::build(algorithm, shape, rank)), true);
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

}  // namespace
}  // namespace tutti::engine

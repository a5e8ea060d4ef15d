// Slots that are filled once for several links.
#include "link/shared_slots.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "unit/lane_job.h"

namespace tutti::test::lanes {
namespace {

using link::PayloadLocation;
using link::SharedSlots;

TEST(SharedSlots, AreFreeWhenAllHaveRead) {
  std::vector<std::byte> memory(SharedSlots::kMemoryBytes);
  SharedSlots slots(memory.data(), 2);
  link::Counter first, second;
  for (size_t i = 0; i < SharedSlots::kCount; ++i) {
    SharedSlots::Slot* const slot = slots.take();
    ASSERT_NE(slot, nullptr);
    EXPECT_EQ(slot->memory(), memory.data() + slot->place());
    slot->tell(first, i + 1), slot->tell(second, i + 1);
    slot->giveBack();
  }
  first.value = SharedSlots::kCount;
  second.value = 1;
  SharedSlots::Slot* const oldest = slots.take();
  ASSERT_NE(oldest, nullptr);
  EXPECT_EQ(slots.take(), nullptr) << "the second reader has not read it";
  second.value = SharedSlots::kCount;
  EXPECT_NE(slots.take(), nullptr);
}

TEST(SharedSlots, BelongToOneAtATime) {
  std::vector<std::byte> memory(SharedSlots::kMemoryBytes);
  SharedSlots slots(memory.data(), 1);
  std::vector<SharedSlots::Slot*> taken;
  for (size_t i = 0; i < SharedSlots::kCount; ++i) taken.push_back(slots.take());
  EXPECT_EQ(slots.take(), nullptr);
  taken[1]->giveBack();
  EXPECT_EQ(slots.take(), taken[1]);
}

std::vector<Where> plain(size_t ranks) { return std::vector<Where>(ranks, Where::kPlain); }

TEST(SharedSlots, SumsOfAllAlgorithms) {
  for (const Algorithm algorithm : schedule::algorithmsFor(Collective::kAllReduce))
    for (const size_t ranks : {3u, 4u, 7u}) {
      Job job(Collective::kAllReduce, algorithm, plain(ranks));
      job.shareSlots();
      job.start();
      job.runAll();
      job.expectSums();
    }
}

TEST(SharedSlots, WhatGoesToSeveralIsWrittenOnce) {
  Job job(Collective::kBroadcast, Algorithm::kDirect, plain(4));
  job.shareSlots();
  job.start();
  EXPECT_EQ(job.run(0), LaneState::kBlocked);
  for (int rank = 1; rank < 4; ++rank) {
    ASSERT_TRUE(job.in(rank).ready());
    EXPECT_EQ(job.in(rank).carried(), PayloadLocation::kAtSender);
    EXPECT_EQ(job.in(rank).lentAt().window, link::kSharedSlots);
    EXPECT_EQ(job.in(rank).lentAt().at, job.in(1).lentAt().at);
  }
  job.runAll();
  for (int rank = 0; rank < 4; ++rank)
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(job.output(rank)[i], Job::inputOf(0, i)) << rank << " at " << i;
}

// The sender goes on in the links' own slots.
TEST(SharedSlots, WhereNoneIsFreeEachLinkHasItsOwn) {
  Job job(Collective::kBroadcast, Algorithm::kDirect, plain(4));
  job.shareSlots();
  for (size_t i = 0; i < SharedSlots::kCount; i += 2) ASSERT_NE((job.shared(0).take(), job.shared(0).take()), nullptr);
  job.start();
  EXPECT_EQ(job.run(0), LaneState::kBlocked);
  for (int rank = 1; rank < 4; ++rank) EXPECT_EQ(job.in(rank).carried(), PayloadLocation::kInSlot);
  job.runAll();
  for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(job.output(3)[i], Job::inputOf(0, i)) << i;
}

// They are the link's, as other slots are: a call that failed has sent what it has sent.
TEST(SharedSlots, AreNotTakenBack) {
  Job job(Collective::kBroadcast, Algorithm::kDirect, plain(3));
  job.shareSlots();
  job.start();
  job.run(0);
  job.lane(0).takeBack();
  EXPECT_EQ(job.in(1).carried(), PayloadLocation::kAtSender);
  EXPECT_EQ(job.run(1), LaneState::kBlocked) << "it has taken what was there, and waits for the rest";
  EXPECT_EQ(job.output(1)[0], Job::inputOf(0, 0));
}

TEST(SharedSlots, APlaceOutsideOfThemIsRefused) {
  for (const uint64_t place : {uint64_t{SharedSlots::kMemoryBytes}, uint64_t{SharedSlots::kMemoryBytes - 8},
                               UINT64_MAX - 100, uint64_t{1} << 40}) {
    Job job(Collective::kBroadcast, Algorithm::kDirect, plain(3));
    job.shareSlots();
    job.start();
    job.run(0);
    const link::RemoteAddress beyond{place, link::kSharedSlots};
    std::memcpy(job.in(1).fifo.headers[0].inlined, &beyond, sizeof beyond);
    EXPECT_EQ(job.run(1), LaneState::kFailed);
    EXPECT_NE(job.lane(1).failure().text.find("where this rank cannot read it"), std::string::npos);
  }
}

TEST(SharedSlots, WhoHasNotMappedThemRefusesThem) {
  Job job(Collective::kBroadcast, Algorithm::kDirect, plain(3));
  job.shareSlots();
  job.start();
  job.run(0);
  job.in(1).shared = nullptr;
  EXPECT_EQ(job.run(1), LaneState::kFailed);
  EXPECT_EQ(job.run(2), LaneState::kBlocked);
}

}  // namespace
}  // namespace tutti::test::lanes

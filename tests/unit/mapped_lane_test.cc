// Lanes whose operands lie in a window that their peers have mapped: read in place, by copies and by sums.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <vector>

#include "kernels/host/write_around.h"
#include "unit/lane_job.h"

namespace tutti::test::lanes {
namespace {

using link::PayloadLocation;

std::vector<Where> all(size_t ranks, Where where) { return std::vector<Where>(ranks, where); }

TEST(MappedLane, SumsAreMadeOfWhatLiesAtThePeers) {
  for (const Algorithm algorithm : schedule::algorithmsFor(Collective::kAllReduce))
    for (const size_t ranks : {2u, 3u, 4u}) {
      Job job(Collective::kAllReduce, algorithm, all(ranks, Where::kMapped));
      job.start();
      job.runAll();
      job.expectSums();
      EXPECT_GT(job.direct(), 0u) << schedule::nameOf(algorithm) << " of " << ranks;
    }
}

TEST(MappedLane, InPlaceToo) {
  for (const Algorithm algorithm : schedule::algorithmsFor(Collective::kAllReduce))
    for (const size_t ranks : {2u, 3u, 4u}) {
      Job job(Collective::kAllReduce, algorithm, all(ranks, Where::kMappedInPlace));
      job.start();
      job.runAll();
      job.expectSums();
      // What these lend, they write over.
      const bool lendsAll = algorithm == Algorithm::kOneShot || algorithm == Algorithm::kDoubling;
      EXPECT_EQ(job.direct() == 0, lendsAll) << schedule::nameOf(algorithm) << " of " << ranks;
    }
}

TEST(MappedLane, EachRankRegistersAsItLikes) {
  for (const Algorithm algorithm : schedule::algorithmsFor(Collective::kAllReduce))
    for (const auto& where : {std::vector{Where::kPlain, Where::kMapped, Where::kMappedInPlace},
                              std::vector{Where::kMappedInPlace, Where::kPlain, Where::kPlain},
                              std::vector{Where::kMapped, Where::kMappedInPlace, Where::kMapped}}) {
      Job job(Collective::kAllReduce, algorithm, where);
      job.start();
      job.runAll();
      job.expectSums();
    }
}

TEST(MappedLane, TwoRanksFillHalfOfALinkBeforeTheyRead) {
  const auto filledBy = [](Collective collective, Algorithm algorithm, size_t ranks) {
    Job job(collective, algorithm, all(ranks, Where::kPlain));
    job.start();
    job.run(0);
    const uint64_t filled = job.out(0).posted;
    job.runAll();
    if (collective == Collective::kAllReduce) job.expectSums();
    return filled;
  };
  EXPECT_EQ(filledBy(Collective::kAllReduce, Algorithm::kOneShot, 2), kDepth / 2);
  EXPECT_EQ(filledBy(Collective::kReduceScatter, Algorithm::kDirect, 2), kDepth / 2);
  EXPECT_EQ(filledBy(Collective::kAllGather, Algorithm::kDirect, 2), kDepth / 2);
  EXPECT_EQ(filledBy(Collective::kAllReduce, Algorithm::kOneShot, 3), 1u);
}

TEST(MappedLane, WhoHasNotMappedItGetsSlots) {
  Job job(Collective::kAllReduce, Algorithm::kTwoShot, all(3, Where::kMapped));
  job.blind(1);
  job.start();
  job.runAll();
  job.expectSums();
  const uint64_t some = job.direct();
  EXPECT_GT(some, 0u);
  Job none(Collective::kAllReduce, Algorithm::kTwoShot, all(3, Where::kMapped));
  for (int rank = 0; rank < 3; ++rank) none.blind(rank);
  none.start();
  none.runAll();
  none.expectSums();
  EXPECT_EQ(none.direct(), 0u);
}

// What a link held when the first byte of some memory was written: until then that may not be written. One at a time.
class AtTheFirstWrite {
 public:
  AtTheFirstWrite(void* memory, size_t bytes, const link::RecvEnd& end) {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), begin = reinterpret_cast<uintptr_t>(memory);
    memory_ = reinterpret_cast<void*>((begin + page - 1) / page * page);
    bytes_ = (begin + bytes) / page * page - reinterpret_cast<uintptr_t>(memory_);
    end_ = &end;
    held_ = -1;
    struct sigaction action {};
    action.sa_flags = SA_RESETHAND;  // what else goes wrong ends the program
    action.sa_handler = [](int) {
      held_ = end_->ready() ? 1 : 0;
      ::mprotect(memory_, bytes_, PROT_READ | PROT_WRITE);
    };
    ::sigaction(SIGSEGV, &action, &before_);
    EXPECT_EQ(::mprotect(memory_, bytes_, PROT_READ), 0);
  }
  ~AtTheFirstWrite() {
    ::mprotect(memory_, bytes_, PROT_READ | PROT_WRITE);
    ::sigaction(SIGSEGV, &before_, nullptr);
  }
  AtTheFirstWrite(const AtTheFirstWrite&) = delete;
  AtTheFirstWrite& operator=(const AtTheFirstWrite&) = delete;

  // 1: a slot, 0: none, -1: nothing was written.
  int held() const { return held_; }

 private:
  struct sigaction before_ {};
  static inline void* memory_ = nullptr;
  static inline size_t bytes_ = 0;
  static inline const link::RecvEnd* end_ = nullptr;
  static inline std::atomic<int> held_ = -1;
};

TEST(MappedLane, WhoReadsTheInputNeedNotWaitForTheOwnCopyOfIt) {
  for (const Collective collective : {Collective::kAllGather, Collective::kBroadcast}) {
    Job job(collective, Algorithm::kDirect, all(2, Where::kMapped));
    job.start();
    const AtTheFirstWrite write(job.outputBytes(0), kCount * sizeof(int32_t), job.in(1));
    job.run(0);
    EXPECT_EQ(write.held(), 1) << nameOf(collective);
    job.runAll();
  }
}

// The lines of what peers have read are in their caches, as those of slots are.
TEST(MappedLane, WherePeersReadIsFilledAsTheirSlotsAre) {
  const auto putsOf = [](Collective collective, Algorithm algorithm, Where where) {
    Job job(collective, algorithm, all(2, where));
    job.start();
    job.runAll();
    if (collective == Collective::kAllReduce) job.expectSums();
    return job.putsOf(0);
  };
  const Job::Puts apart = putsOf(Collective::kAllReduce, Algorithm::kTwoShot, Where::kMapped);
  const Job::Puts inPlace = putsOf(Collective::kAllReduce, Algorithm::kTwoShot, Where::kMappedInPlace);
  const Job::Puts there = putsOf(Collective::kBroadcast, Algorithm::kDirect, Where::kMappedInPlace);
  EXPECT_EQ(apart.steps, 2) << "a sum, and a copy of the other's";
  EXPECT_EQ(apart.chosen, kernels::kGoesAround ? 1 : 0) << "the sum is read there";
  EXPECT_EQ(inPlace.steps, 2);
  EXPECT_EQ(inPlace.chosen, kernels::kGoesAround ? 2 : 0) << "the copy goes over the input, which was read there";
  EXPECT_EQ(there.steps, 1);
  EXPECT_EQ(there.chosen, 0) << "nothing is written";
}

// Who waits for readers on its own core waits for a turn of them, which a short call is not worth.
TEST(MappedLane, WhoSharesACoreLendsOfLongerCalls) {
  for (const double ranksPerCore : {1.0, 1.5}) {
    engine::Crowd crowd(ranksPerCore);
    Job job(Collective::kBroadcast, Algorithm::kDirect, all(3, Where::kMapped));
    job.start(&crowd);
    EXPECT_EQ(job.leastMapped(0), ranksPerCore > 1 ? engine::kLeastMappedInTurns : engine::kLeastMapped);
    job.runAll();
    EXPECT_GT(job.direct(), 0u);
  }
}

TEST(MappedLane, TheCallEndsWhenNobodyReadsItsBufferAnyMore) {
  Job job(Collective::kBroadcast, Algorithm::kDirect, all(3, Where::kMapped));
  job.start();
  EXPECT_EQ(job.run(0), LaneState::kBlocked);
  EXPECT_EQ(job.lane(0).roundsDone(), job.lane(0).rounds()) << "all is posted";
  EXPECT_EQ(job.in(1).carried(), PayloadLocation::kAtSender);
  EXPECT_EQ(job.in(1).lentAt().window, link::kWindow);
  EXPECT_EQ(job.run(1), LaneState::kDone);
  EXPECT_EQ(job.run(0), LaneState::kBlocked) << "rank 2 has not read it";
  EXPECT_EQ(job.lane(0).waitingFor(), 2);
  EXPECT_EQ(job.run(2), LaneState::kDone);
  EXPECT_EQ(job.run(0), LaneState::kDone);
}

// Its caller may do what it likes with the buffer once the call has failed.
TEST(MappedLane, WhatIsTakenBackIsNotTaken) {
  Job job(Collective::kAllReduce, Algorithm::kTwoShot, all(2, Where::kMapped));
  job.start();
  job.run(0);
  job.lane(0).takeBack();
  EXPECT_EQ(job.run(1), LaneState::kFailed);
  EXPECT_EQ(job.lane(1).failure().kind, engine::LaneFailure::Kind::kLink);
  EXPECT_EQ(job.lane(1).failure().peer, 0);
  EXPECT_NE(job.lane(1).failure().text.find("its call failed"), std::string::npos) << job.lane(1).failure().text;
}

// What a peer says of itself is judged before anything is read.
TEST(MappedLane, APlaceThatIsNoneIsRefused) {
  constexpr uint64_t kBeyond = window::kMostBytes * 2;
  for (const auto& [lent, says] : std::vector<std::pair<link::RemoteAddress, const char*>>{
           {{0, link::kWindow}, "outside of the memory"},
           {{kBeyond, link::kWindow}, "outside of the memory"},
           {{UINT64_MAX - 100, link::kWindow}, "outside of the memory"},
           {{window::kPieceBytes, link::kWindow + 1}, "where this rank cannot read it"},
           {{window::kPieceBytes, UINT64_MAX}, "where this rank cannot read it"},
           {{window::kPieceBytes, 0}, "where this rank cannot read it"}}) {
    Job job(Collective::kAllReduce, Algorithm::kTwoShot, all(2, Where::kMapped));
    job.start();
    job.run(0);
    std::memcpy(job.in(1).fifo.headers[0].inlined, &lent, sizeof lent);
    EXPECT_EQ(job.run(1), LaneState::kFailed) << lent.at << ' ' << lent.window;
    EXPECT_EQ(job.lane(1).failure().peer, 0);
    EXPECT_NE(job.lane(1).failure().text.find(says), std::string::npos) << job.lane(1).failure().text;
  }
}

TEST(MappedLane, WhoHasNoWindowMappedRefusesAll) {
  Job job(Collective::kAllReduce, Algorithm::kTwoShot, all(2, Where::kMapped));
  job.start();
  job.run(0);
  job.in(1).window = nullptr;
  EXPECT_EQ(job.run(1), LaneState::kFailed);
  EXPECT_NE(job.lane(1).failure().text.find("where this rank cannot read it"), std::string::npos);
}

}  // namespace
}  // namespace tutti::test::lanes

// One lane over links whose drivers do what the test says.
#include "engine/lane.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "schedule/algorithm.h"
#include "schedule/builder.h"
#include "support/sanitized.h"
#include "team/call.h"

namespace tutti::engine {
namespace {

// A link of `depth` slots over a socket that takes what is posted, or takes nothing.
class Outlet final : public link::Driver {
 public:
  explicit Outlet(int peer, uint32_t depth = 1) : memory_(link::Fifo::bytesFor(kSlotBytes, depth) / sizeof(Line)) {
    end_.fifo = link::Fifo::over(reinterpret_cast<std::byte*>(memory_.data()), kSlotBytes, depth);
    end_.driver = this;
    end_.peer = peer;
  }
  static constexpr uint32_t kSlotBytes = 128;

  link::Progress progress() noexcept override {
    ++looks_;
    if (breaks_) return link::Progress::kFailed;
    const uint64_t before = end_.fifo.released->value.load();
    if (!writable_ || before == end_.posted) return link::Progress::kIdle;
    end_.fifo.released->value.store(end_.posted);
    return link::Progress::kAdvanced;
  }
  bool sending() const noexcept override { return end_.fifo.released->value.load() != end_.posted; }
  Interest wanted() noexcept override { return {-1, 0}; }
  std::string error() const override { return "broken by the test"; }

  void becomeWritable() noexcept { writable_ = true; }
  void breakOff() noexcept { breaks_ = true; }
  link::SendEnd& end() noexcept { return end_; }
  uint64_t looks() const noexcept { return looks_; }

 private:
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  std::vector<Line> memory_;
  link::SendEnd end_;
  bool writable_ = false, breaks_ = false;
  uint64_t looks_ = 0;
};

// Rank 0 of three sends a slot to rank 1, and then two to rank 2, whose link has room for one.
class TwoPeers : public testing::Test {
 protected:
  TwoPeers() {
    schedule::Shape shape;
    shape.collective = Collective::kSendRecv;
    shape.size = 3;
    schedule::Builder builder(shape, 0, schedule::SegmentMap::kSplit, 1);
    for (const int peer : {1, 2, 2}) builder.at(0).from(schedule::Operand::input()).toRank(peer);
    schedule_ = builder.finish(1);
    binding_.schedule = &schedule_;
    for (const int peer : schedule_.outPeers) binding_.outs.push_back(&(peer == 1 ? first_ : second_).end());
    binding_.prepare(Outlet::kSlotBytes);
    work_.input = input_.data();
    work_.arithmetic.type = DataType::kInt8;
    work_.layout.total = work_.layout.stride = work_.layout.chunk = input_.size();
    lane_.start(binding_, work_);
  }

  LaneState run() {
    bool moved = false;
    return lane_.run(moved);
  }

  schedule::Schedule schedule_;
  Outlet first_{1}, second_{2};
  std::array<std::byte, 64> input_{};
  Binding binding_;
  LaneWork work_;
  Lane lane_;
};

using LaneTurns = TwoPeers;

// What was posted for rank 1 did not leave at once. The lane waits for room on the way to rank 2, which may be waiting
// for rank 1, and that one for our slot.
TEST_F(LaneTurns, WhoWaitsForRoomStillSendsToOthers) {
  ASSERT_EQ(run(), LaneState::kBlocked);
  ASSERT_EQ(lane_.waitingFor(), 2);
  ASSERT_TRUE(first_.sending());
  first_.becomeWritable();
  EXPECT_EQ(run(), LaneState::kBlocked);
  EXPECT_FALSE(first_.sending()) << "posted, writable, and never driven";
}

TEST_F(LaneTurns, WhatIsWaitedForIsDrivenOnceALook) {
  run();
  const uint64_t before = second_.looks();
  run();
  EXPECT_EQ(second_.looks(), before + 1);
}

TEST_F(LaneTurns, ALinkThatBreaksWhileAnotherIsWaitedForIsTold) {
  run();
  first_.breakOff();
  EXPECT_EQ(run(), LaneState::kFailed);
  EXPECT_EQ(lane_.failure().peer, 1);
  EXPECT_EQ(lane_.failure().text, "broken by the test");
}

TEST_F(LaneTurns, EndsWhenAllHasLeft) {
  run();
  second_.becomeWritable();
  EXPECT_EQ(run(), LaneState::kBlocked) << "the slot for rank 1 is still here";
  first_.becomeWritable();
  EXPECT_EQ(run(), LaneState::kDone);
}

// --- a peer that sleeps ---

TEST(Wakeups, ComeForHalfAFifoOrAtAStop) {
  link::Doorbell bell;
  link::Wakeups wakeups;
  constexpr uint32_t kDepth = 8;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(wakeups.owe(&bell, kDepth)) << "nobody sleeps";
  bell.sleeping = 2, bell.patient = 1;
  EXPECT_FALSE(wakeups.owe(&bell, kDepth));
  EXPECT_EQ(bell.rings.load(), 1u) << "one of the two is not patient";
  bell.sleeping = 1;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(wakeups.owe(&bell, kDepth));
  EXPECT_EQ(bell.rings.load(), 1u);
  EXPECT_FALSE(wakeups.owe(&bell, kDepth));
  EXPECT_EQ(bell.rings.load(), 2u);
  wakeups.settle(&bell);
  EXPECT_EQ(bell.rings.load(), 2u) << "nothing is owed";
  EXPECT_TRUE(wakeups.owe(&bell, kDepth));
  wakeups.settle(&bell);
  EXPECT_EQ(bell.rings.load(), 3u);
  EXPECT_FALSE(wakeups.owe(nullptr, kDepth)) << "who does not sleep on this memory";
}

TEST_F(LaneTurns, WhoSleepsIsWokenWhereTheLaneStops) {
  link::Doorbell bell;
  bell.sleeping = bell.patient = 1;
  Outlet deep(2, 8);
  deep.end().peerBell = &bell;
  binding_.outs.back() = &deep.end();
  first_.becomeWritable(), deep.becomeWritable();
  EXPECT_EQ(run(), LaneState::kDone);
  EXPECT_EQ(bell.rings.load(), 1u) << "for the two slots together";
}

// --- a peer over mapped memory, which may change what it has posted at any time ---

class Posted : public testing::Test {
 protected:
  static constexpr uint32_t kSlotBytes = 128, kBytes = 64;

  Posted() : memory_(link::Fifo::bytesFor(kSlotBytes, 1) / sizeof(Line)) {
    end_.fifo = link::Fifo::over(memory_.front().bytes, kSlotBytes, 1);
    end_.peer = 0;
    call_.collective = Collective::kSendRecv;
    call_.recv = output_.data();
    call_.count = kBytes;
    binding_.schedule = &schedule_;
    binding_.ins = {&end_};
    binding_.prepare(kSlotBytes);
    work_ = comm::toWork(call_, 0, schedule_, kSlotBytes, 0, 1);
  }

  link::SlotHeader& header() noexcept { return end_.fifo.headers[0]; }
  // What a lane makes of the slot that stands there.
  LaneFailure take() {
    header().sequence.store(end_.received + 1);
    Lane lane;
    lane.start(binding_, work_);
    bool moved = false;
    const LaneState state = lane.run(moved);
    EXPECT_EQ(state == LaneState::kFailed, lane.failure().kind != LaneFailure::Kind::kNone);
    return lane.failure();
  }

  struct alignas(128) Line {
    std::byte bytes[128];
  };
  const schedule::Schedule schedule_ = schedule::buildReceive(1, 2, 0);
  std::vector<Line> memory_;
  std::array<std::byte, kBytes> output_{};
  link::RecvEnd end_;
  comm::Call call_;
  Binding binding_;
  LaneWork work_;
};

using LaneAndAPostedSlot = Posted;

TEST_F(LaneAndAPostedSlot, JudgesOneReadingOfAHeaderThatChanges) {
  if (kThreadSanitized) GTEST_SKIP() << "memory that a peer changes is a race by its nature";
  header().fingerprint = work_.fingerprint;
  std::atomic<bool> over{false};
  std::thread peer([&] {
    const std::atomic_ref<uint32_t> bytes(header().bytes);
    while (!over) bytes.store(kBytes), bytes.store(kBytes - 1);
  });
  constexpr int kTimesEach = 300'000;  // a change between two looks is rare
  int taken = 0, refused = 0, wrong = 0;
  while (taken < kTimesEach || refused < kTimesEach) {
    const LaneFailure failure = take();
    (failure.kind == LaneFailure::Kind::kNone ? taken : refused) += 1;
    wrong += failure.kind == LaneFailure::Kind::kBytes && failure.bytes == failure.expected;
  }
  over = true;
  peer.join();
  EXPECT_EQ(wrong, 0) << "refused for a length, and told the right one";
}

// What has been judged is where it should be, whatever the header says by then.
TEST_F(LaneAndAPostedSlot, IsReadWhereSoManyBytesAre) {
  header().bytes = 8;
  EXPECT_EQ(end_.payload(kBytes), end_.fifo.slots);
  header().bytes = kBytes;
  EXPECT_EQ(end_.payload(8), header().inlined);
}

}  // namespace
}  // namespace tutti::engine

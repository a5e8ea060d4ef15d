// One lane over links whose drivers do what the test says.
#include "engine/lane.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "schedule/builder.h"

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
  int pollFd() const noexcept override { return -1; }
  short pollEvents() const noexcept override { return 0; }
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
  Work work_;
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

}  // namespace
}  // namespace tutti::engine

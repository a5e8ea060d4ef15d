// An all-reduce of two ranks in place, whose driver sends from the caller's buffer when the test says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/lane.h"
#include "schedule/algorithm.h"
#include "team/call.h"

namespace tutti::engine {
namespace {

using schedule::Algorithm;

constexpr uint32_t kSlotBytes = 8 << 10, kDepth = 8;
constexpr size_t kRounds = 4, kEach = kSlotBytes / sizeof(int32_t), kCount = kRounds * kEach;

struct alignas(128) Line {
  std::byte bytes[128];
};

// Both directions of a link to rank 1: what leaves is kept as it was then.
class Wire final : public link::Driver {
 public:
  Wire() : memory_(2 * kLinesEach) {
    send.fifo = link::Fifo::over(memory_[0].bytes, kSlotBytes, kDepth);
    recv.fifo = link::Fifo::over(memory_[kLinesEach].bytes, kSlotBytes, kDepth);
    send.driver = recv.driver = this;
    send.peer = recv.peer = 1;
  }
  link::Progress progress() noexcept override {
    if (may_ == 0 || sent_ == send.posted) return link::Progress::kIdle;
    for (; may_ != 0 && sent_ != send.posted; --may_, ++sent_) {
      const auto* const from = reinterpret_cast<const int32_t*>(link::placeSent(send.fifo, sent_));
      left.insert(left.end(), from, from + kEach);
    }
    send.fifo.released->value.store(sent_);
    return link::Progress::kAdvanced;
  }
  bool reachesBuffers() const noexcept override { return true; }
  bool sending() const noexcept override { return sent_ != send.posted; }
  Interest wanted() noexcept override { return {-1, 0}; }
  std::string error() const override { return ""; }

  void mayLeave(size_t slots) { may_ = slots; }
  void arrive(uint64_t number, const link::Fingerprint& fingerprint, int32_t value) {
    auto* const to = reinterpret_cast<int32_t*>(recv.fifo.slot(number));
    std::fill_n(to, kEach, value);
    link::SlotHeader& line = recv.fifo.line(number);
    line.fingerprint = fingerprint;
    line.bytes = kSlotBytes;
    line.carried = link::PayloadLocation::kInSlot;
    line.sequence.store(number + 1);
  }
  link::PayloadLocation carried(uint64_t number) const { return send.fifo.line(number).carried; }

  link::SendEnd send;
  link::RecvEnd recv;
  std::vector<int32_t> left;

 private:
  static constexpr size_t kLinesEach = link::Fifo::bytesFor(kSlotBytes, kDepth) / sizeof(Line);
  std::vector<Line> memory_;
  uint64_t sent_ = 0;
  size_t may_ = 0;
};

// Rank 0, which has `i` at element i; each of rank 1 is 1000.
class WriteBehind : public testing::TestWithParam<Algorithm> {
 protected:
  WriteBehind() : buffer_(kCount + 1) {
    for (size_t i = 0; i < buffer_.size(); ++i) buffer_[i] = static_cast<int32_t>(i);
    schedule::Shape shape;
    shape.collective = Collective::kAllReduce;
    shape.size = 2;
    schedule_ = schedule::build(GetParam(), shape, 0);
    binding_.schedule = &schedule_;
    binding_.ins.push_back(&wire_.recv);
    binding_.outs.push_back(&wire_.send);
    binding_.singleCopy = link::SingleCopy::kWhereFaster;
    binding_.prepare(kSlotBytes);
  }
  // All that the peer sends is there.
  void start(int32_t* output) {
    comm::Call call;
    call.collective = Collective::kAllReduce;
    call.type = DataType::kInt32;
    call.count = kCount;
    call.send = reinterpret_cast<const std::byte*>(buffer_.data());
    call.recv = reinterpret_cast<std::byte*>(output);
    const LaneWork work = comm::toWork(call, 0, schedule_, kSlotBytes, 0, 1);
    for (size_t i = 0; i < kRounds; ++i) wire_.arrive(i, work.fingerprint, 1000);
    lane_.start(binding_, work);
  }
  LaneState run() {
    bool moved = false;
    return lane_.run(moved);
  }
  size_t roundsSummed() const {
    size_t rounds = 0;
    while (rounds < kRounds && buffer_[rounds * kEach + 1] == static_cast<int32_t>(rounds * kEach + 1) + 1000) ++rounds;
    for (size_t i = 0; i < kCount; ++i)
      EXPECT_EQ(buffer_[i], static_cast<int32_t>(i) + (i < rounds * kEach ? 1000 : 0)) << i;
    return rounds;
  }
  void expectInputLeft(size_t rounds) const {
    ASSERT_EQ(wire_.left.size(), rounds * kEach);
    for (size_t i = 0; i < wire_.left.size(); ++i) ASSERT_EQ(wire_.left[i], static_cast<int32_t>(i)) << i;
  }

  std::vector<int32_t> buffer_;
  schedule::Schedule schedule_;
  Wire wire_;
  Binding binding_;
  Lane lane_;
};

TEST_P(WriteBehind, SumsGoOverWhatHasLeftAndNothingElse) {
  start(buffer_.data());
  for (size_t rounds = 0; rounds < kRounds; ++rounds) {
    EXPECT_EQ(run(), LaneState::kBlocked);
    EXPECT_EQ(lane_.waitingFor(), 1);
    EXPECT_EQ(wire_.carried(rounds), link::PayloadLocation::kAtSender);
    EXPECT_EQ(roundsSummed(), rounds);
    expectInputLeft(rounds);
    wire_.mayLeave(1);
  }
  EXPECT_EQ(run(), LaneState::kDone);
  EXPECT_EQ(roundsSummed(), kRounds);
  expectInputLeft(kRounds);
}

TEST_P(WriteBehind, WhatIsOfAnotherCallIsToldWhateverHasLeft) {
  start(buffer_.data());
  link::Fingerprint other = wire_.recv.said().fingerprint;
  ++other.operation;
  wire_.arrive(0, other, 1000);
  EXPECT_EQ(run(), LaneState::kFailed);
  EXPECT_EQ(lane_.failure().kind, LaneFailure::Kind::kMismatch);
  EXPECT_EQ(roundsSummed(), 0u);
}

// It fails while a part has not left: that goes on from slots, as it was.
TEST_P(WriteBehind, WhatHasNotLeftIsAsItWasWhereTheCallFails) {
  start(buffer_.data());
  run();
  wire_.mayLeave(2);
  run();
  EXPECT_EQ(roundsSummed(), 2u);
  lane_.takeBack();
  std::ranges::fill(buffer_, -1);
  wire_.mayLeave(kRounds);
  wire_.progress();
  expectInputLeft(kRounds);
}

// Where the buffers overlap otherwise, sums of one round go over the next.
TEST_P(WriteBehind, BuffersThatOverlapInPartGoByWayOfSlots) {
  start(buffer_.data() + 1);
  run();
  for (size_t i = 0; i < kRounds; ++i) EXPECT_EQ(wire_.carried(i), link::PayloadLocation::kInSlot);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, WriteBehind, testing::Values(Algorithm::kOneShot, Algorithm::kDoubling),
                         [](const auto& one) { return std::string(schedule::nameOf(one.param)); });

TEST(MayWriteBehind, OneRankPostsItsWholeInputToOneOther) {
  const auto may = [](Algorithm algorithm, int ranks, Collective collective = Collective::kAllReduce) {
    schedule::Shape shape;
    shape.collective = collective;
    shape.size = ranks;
    const bool first = mayWriteBehind(schedule::build(algorithm, shape, 0));
    EXPECT_EQ(mayWriteBehind(schedule::build(algorithm, shape, 1)), first) << "both ends";
    return first;
  };
  EXPECT_TRUE(may(Algorithm::kOneShot, 2));
  EXPECT_TRUE(may(Algorithm::kDoubling, 2));
  EXPECT_FALSE(may(Algorithm::kOneShot, 3));
  EXPECT_FALSE(may(Algorithm::kDoubling, 4));
  EXPECT_FALSE(may(Algorithm::kTwoShot, 2));
  EXPECT_FALSE(may(Algorithm::kRing, 2));
  EXPECT_FALSE(may(Algorithm::kDoubling, 2, Collective::kReduce));
}

}  // namespace
}  // namespace tutti::engine

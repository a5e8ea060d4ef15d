// Lanes over a driver that sends from memory while it holds it, as RDMA does: only what the program has said to stay is
// asked for, each hold ends with its call, and where one is refused slots are filled.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/message_lanes.h"
#include "window/lasting_memory.h"

namespace tutti::test {
namespace {

using engine::LaneState;

constexpr uint32_t kHeldSlotBytes = 16 << 10, kHeldDepth = 4;

// From one FIFO to another, a slot a turn.
class HoldingDriver final : public link::Driver {
 public:
  HoldingDriver(const link::Fifo& from, const link::Fifo& to) : from_(from), to_(to) {}

  bool holdsBuffers() const noexcept override { return true; }
  bool beginHolding(const window::Lasting& memory) noexcept override {
    ++asked;
    if (refuses) return false;
    held.push_back(memory);
    return true;
  }
  void endHolding(const window::Lasting& memory) noexcept override {
    const auto found = std::ranges::find(held, memory.number, &window::Lasting::number);
    ASSERT_NE(found, held.end());
    held.erase(found);
  }
  void stopSendingBuffers() noexcept override {
    ++stopped;
    EXPECT_FALSE(held.empty()) << "it was let go before";
  }
  link::Progress progress() noexcept override {
    if (stands || !isPosted() || moved_ - to_.released->value.load() >= kHeldDepth) return link::Progress::kIdle;
    const link::SlotHeader& header = from_.headers[moved_ % kHeldDepth];
    link::SlotHeader& there = to_.headers[moved_ % kHeldDepth];
    there.fingerprint = header.fingerprint;
    there.bytes = header.bytes;
    if (header.bytes <= link::kInlineBytes)
      std::memcpy(there.inlined, header.inlined, header.bytes);
    else
      std::memcpy(to_.slots + moved_ % kHeldDepth * size_t{kHeldSlotBytes}, payloadOf(header), header.bytes);
    there.sequence.store(++moved_);
    from_.released->value.store(moved_);
    return link::Progress::kAdvanced;
  }
  bool sending() const noexcept override { return isPosted(); }
  Interest wanted() noexcept override { return {-1, 0}; }
  std::string error() const override { return "none"; }

  bool refuses = false, stands = false;
  int asked = 0, stopped = 0, lent = 0;
  std::vector<window::Lasting> held;

 private:
  bool isPosted() const noexcept { return from_.headers[moved_ % kHeldDepth].sequence.load() == moved_ + 1; }
  const std::byte* payloadOf(const link::SlotHeader& header) noexcept {
    const std::byte* const at = link::placeSent(from_, moved_);
    if (header.carried != link::PayloadLocation::kAtSender) return at;
    ++lent;
    EXPECT_TRUE(std::ranges::any_of(held, [&](const window::Lasting& one) {
      return at >= one.begin && at + header.bytes <= one.begin + one.bytes;
    }));
    return at;
  }
  const link::Fifo from_, to_;
  uint64_t moved_ = 0;
};

class HoldingTest : public testing::Test, protected MessageLanes {
 protected:
  HoldingTest() {
    input_.resize(200'000), output_.resize(200'000);
    for (size_t i = 0; i < input_.size(); ++i) input_[i] = static_cast<std::byte>(i * 13 + i / 251);
    out_.fifo = ends_[0].fifo;
    in_.fifo = ends_[1].fifo;
    out_.peer = 1;
    out_.driver = in_.driver = &driver_;
  }
  struct End {
    End() : memory(static_cast<std::byte*>(std::aligned_alloc(128, kBytes))) { std::memset(memory, 0, kBytes); }
    ~End() { std::free(memory); }
    static constexpr size_t kBytes = (link::Fifo::bytesFor(kHeldSlotBytes, kHeldDepth) + 127) / 128 * 128;
    std::byte* const memory;
    const link::Fifo fifo = link::Fifo::over(memory, kHeldSlotBytes, kHeldDepth);
  };
  void start(bool sends, uint64_t number, link::SingleCopy way = link::SingleCopy::kWhereFaster) {
    startLane(sends, out_, in_, kHeldSlotBytes, number, way);
  }
  void sendOnce(link::SingleCopy way = link::SingleCopy::kWhereFaster) {
    std::ranges::fill(output_, std::byte{0x55});
    start(true, ++number_, way), start(false, number_, way);
    LaneState sent = LaneState::kBlocked, received = LaneState::kBlocked;
    for (int i = 0; i < 10'000 && (sent == LaneState::kBlocked || received == LaneState::kBlocked); ++i) {
      if (sent == LaneState::kBlocked) sent = run(true);
      if (received == LaneState::kBlocked) received = run(false);
    }
    EXPECT_EQ(sent, LaneState::kDone);
    EXPECT_EQ(received, LaneState::kDone);
    EXPECT_TRUE(output_ == input_);
    EXPECT_TRUE(driver_.held.empty());
  }

  End ends_[2];
  HoldingDriver driver_{ends_[0].fifo, ends_[1].fifo};
  link::SendEnd out_;
  link::RecvEnd in_;
  uint64_t number_ = 0;
};

TEST_F(HoldingTest, MemoryOfWhichNothingIsKnownGoesThroughSlots) {
  sendOnce();
  EXPECT_EQ(driver_.asked, 0);
  EXPECT_EQ(driver_.lent, 0);
  const window::Lasts part(input_.data(), input_.size() - 1);
  sendOnce();
  EXPECT_EQ(driver_.asked, 0);
}

TEST_F(HoldingTest, MemoryThatLastsIsHeldForACall) {
  std::optional<window::Lasts> lasts;
  lasts.emplace(input_.data(), input_.size());
  sendOnce();
  EXPECT_EQ(driver_.asked, 1);
  EXPECT_GE(driver_.lent, 12);
  EXPECT_EQ(directSlots_.load(), static_cast<uint64_t>(driver_.lent));
  sendOnce();
  EXPECT_EQ(driver_.asked, 2);
  sendOnce(link::SingleCopy::kNever);
  EXPECT_EQ(driver_.asked, 2);
  lasts.reset();
  sendOnce();
  EXPECT_EQ(driver_.asked, 2);
}

TEST_F(HoldingTest, WhatIsRefusedGoesThroughSlots) {
  const window::Lasts lasts(input_.data(), input_.size());
  driver_.refuses = true;
  sendOnce();
  EXPECT_EQ(driver_.asked, 1);
  EXPECT_EQ(driver_.lent, 0);
}

TEST_F(HoldingTest, ACallThatFailsTakesItBackAndLetsItGo) {
  const window::Lasts lasts(input_.data(), input_.size());
  driver_.stands = true;
  start(true, 1);
  EXPECT_EQ(run(true), LaneState::kBlocked);
  EXPECT_EQ(driver_.held.size(), 1u);
  EXPECT_EQ(out_.posted, kHeldDepth);
  lane(true).takeBack();
  EXPECT_EQ(driver_.stopped, 1);
  EXPECT_TRUE(driver_.held.empty());
  const std::vector<std::byte> before = input_;
  std::ranges::fill(input_, std::byte{0xbd});
  driver_.stands = false;
  while (driver_.progress() == link::Progress::kAdvanced) {
  }
  EXPECT_EQ(driver_.lent, 0);
  for (uint64_t slot = 0; slot < kHeldDepth; ++slot) {
    const uint32_t bytes = ends_[1].fifo.headers[slot].bytes;
    EXPECT_EQ(0, std::memcmp(ends_[1].fifo.slots + slot * kHeldSlotBytes, before.data() + slot * bytes, bytes));
  }
}

}  // namespace
}  // namespace tutti::test

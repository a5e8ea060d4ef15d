// Lanes over TCP links, whose payloads go from the sender's buffer and to the receiver's, beside the slots.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "conformance/message_lanes.h"
#include "net/cipher.h"
#include "support/edge_pair.h"
#include "support/patience.h"
#include "transports/tcp/tcp.h"

namespace tutti::test {
namespace {

using engine::LaneFailure;
using engine::LaneState;

constexpr uint32_t kMoreThanSockets = 16 << 20;
constexpr std::byte kNobodys{0xee}, kCallers{0x55};

// A message from one end to the other.
class BuffersTest : public testing::TestWithParam<std::string>, protected MessageLanes {
 protected:
  void SetUp() override {
    if (GetParam() == "aes" && !hasAes256Gcm()) GTEST_SKIP() << "this processor has no AES";
  }
  // So many slots of a message, the last one short.
  void open(uint32_t slotBytes, uint32_t depth, size_t bytes) {
    slotBytes_ = slotBytes;
    ends_ = {};
    edges_ = std::make_unique<EdgePair>(slotBytes, depth);
    MeetingPair meetings;
    if (GetParam() == "chacha") meetings.room->seal(CipherKind::kXChaCha20Poly1305);
    if (GetParam() == "aes") meetings.room->seal(CipherKind::kAes256Gcm);
    const auto tcp = transports::makeTcp();
    ends_ = connect(*edges_, meetings, *tcp, *tcp);
    for (auto& end : ends_) forget(end->send.fifo), forget(end->recv.fifo);
    input_.resize(bytes);
    output_.assign(bytes, kCallers);
    for (size_t i = 0; i < bytes; ++i) input_[i] = static_cast<std::byte>(i * 13 + i / 251);
    sent_ = input_;
  }
  static void forget(const link::Fifo& fifo) { std::memset(fifo.slots, 0xee, size_t{fifo.depth} * fifo.slotBytes); }
  void start(bool sends, uint64_t number = 0, link::SingleCopy way = link::SingleCopy::kWhereFaster) {
    startLane(sends, ends_[0]->send, ends_[1]->recv, slotBytes_, number, way);
  }
  void runBoth() {
    LaneState sent = LaneState::kBlocked, received = LaneState::kBlocked;
    const auto deadline = Deadline::in(longWait());
    while ((sent == LaneState::kBlocked || received == LaneState::kBlocked) && !deadline.passed()) {
      if (received == LaneState::kBlocked) received = run(false);
      if (sent == LaneState::kBlocked) sent = run(true);
    }
    EXPECT_EQ(sent, LaneState::kDone) << lane(true).failure().text;
    EXPECT_EQ(received, LaneState::kDone) << lane(false).failure().text;
    EXPECT_TRUE(output_ == sent_);
  }
  // Until some of a slot has arrived, which is longer than what sockets hold.
  void runUntilSomeHasArrived() {
    const auto deadline = Deadline::in(longWait());
    const uint64_t before = ends_[1]->recv.driver->advances();
    while (ends_[1]->recv.driver->advances() == before && !deadline.passed()) run(true), run(false);
    ASSERT_FALSE(ends_[1]->recv.ready());
    ASSERT_FALSE(ends_[0]->send.drained());
  }
  // Only the drivers: what lanes that have failed leave to them.
  void driveUntilReady() {
    const auto deadline = Deadline::in(longWait());
    while (!ends_[1]->recv.ready() && !deadline.passed())
      for (auto& end : ends_) end->recv.driver->drive();
    ASSERT_TRUE(ends_[1]->recv.ready());
  }
  // Beside the few bytes that are read ahead.
  static bool isUntouched(const link::Fifo& fifo) {
    constexpr size_t kAhead = 2 << 10;
    for (uint32_t slot = 0; slot < fifo.depth; ++slot) {
      const std::byte* const begin = fifo.slots + size_t{slot} * fifo.slotBytes;
      if (!std::all_of(begin + kAhead, begin + fifo.slotBytes, [](std::byte b) { return b == kNobodys; })) return false;
    }
    return true;
  }
  // As memory, which is quick under sanitizers.
  static bool holds(std::byte what, const std::vector<std::byte>& buffer) {
    return buffer[0] == what && std::memcmp(buffer.data(), buffer.data() + 1, buffer.size() - 1) == 0;
  }

  uint32_t slotBytes_ = 0;
  std::unique_ptr<EdgePair> edges_;
  ConnectionPair ends_;
  std::vector<std::byte> sent_;
};

TEST_P(BuffersTest, SlotsAreNotTouched) {
  for (const bool isLate : {false, true}) {
    open(64 << 10, 4, 20 * (64 << 10) + 12'345);
    start(true), start(false);
    for (int i = 0; i < 10; ++i) run(isLate);  // it says where before anything comes, or finds what waits in the socket
    runBoth();
    EXPECT_TRUE(isUntouched(ends_[0]->send.fifo)) << "it was copied before it was sent";
    EXPECT_TRUE(isUntouched(ends_[1]->recv.fifo)) << "it was copied after it had been received";
  }
}

TEST_P(BuffersTest, SlotsAreFilledWhereThatIsWanted) {
  open(64 << 10, 4, 20 * (64 << 10));
  start(true, 0, link::SingleCopy::kNever), start(false, 0, link::SingleCopy::kNever);
  runBoth();
  EXPECT_FALSE(isUntouched(ends_[0]->send.fifo));
  EXPECT_FALSE(isUntouched(ends_[1]->recv.fifo));
}

TEST_P(BuffersTest, OneEndAloneMayUseSlots) {
  for (const bool sends : {true, false}) {
    open(24 << 10, 2, 31 * (24 << 10) + 77);
    start(sends, 0, link::SingleCopy::kNever), start(!sends);
    runBoth();
  }
}

// Everything from nothing to a slot and a bit, one after the other on one link.
TEST_P(BuffersTest, EveryLength) {
  open(8 << 10, 4, 0);
  uint64_t number = 0;
  for (size_t bytes = 1; bytes < 20'000; bytes += bytes < 64 ? 1 : 199) {
    input_.resize(bytes);
    for (size_t i = 0; i < bytes; ++i) input_[i] = static_cast<std::byte>(i * 7 + bytes);
    sent_ = input_;
    output_.assign(bytes, kCallers);
    start(true, number), start(false, number);
    ++number;
    runBoth();
    ASSERT_FALSE(HasFailure()) << bytes;
  }
}

// It may have been read to where the right payload would have gone, together with its head; then it is in its slot all
// the same.
TEST_P(BuffersTest, WhatDoesNotMatchIsRefusedAndWhole) {
  open(64 << 10, 4, 3 * (64 << 10));
  start(true, 1), start(false, 2);
  LaneState received = LaneState::kBlocked;
  const auto deadline = Deadline::in(longWait());
  while (received == LaneState::kBlocked && !deadline.passed()) received = run(false), run(true);
  EXPECT_EQ(received, LaneState::kFailed);
  EXPECT_EQ(lane(false).failure().kind, LaneFailure::Kind::kMismatch);
  const link::RecvEnd& end = ends_[1]->recv;
  EXPECT_EQ(end.carried(), link::PayloadLocation::kInSlot);
  EXPECT_EQ(std::memcmp(end.payload(end.said().bytes), sent_.data(), end.said().bytes), 0);
  EXPECT_TRUE(holds(kCallers, {output_.begin() + (64 << 10), output_.end()}));
}

// A call that has failed gives its buffers back to the caller: nothing is written there any more, and nothing is lost
// of the stream.
TEST_P(BuffersTest, AReceiverThatFailsIsWrittenToNoMore) {
  open(kMoreThanSockets, 1, kMoreThanSockets);
  start(true), start(false);
  run(false);
  runUntilSomeHasArrived();
  ASSERT_FALSE(holds(kCallers, output_)) << "nothing has landed yet";
  lane(false).takeBack();
  std::ranges::fill(output_, kCallers);
  driveUntilReady();
  EXPECT_TRUE(holds(kCallers, output_));
  EXPECT_EQ(ends_[1]->recv.carried(), link::PayloadLocation::kInSlot);
  EXPECT_EQ(std::memcmp(ends_[1]->recv.payload(sent_.size()), sent_.data(), sent_.size()), 0);
}

TEST_P(BuffersTest, ASenderThatFailsIsReadNoMore) {
  open(kMoreThanSockets, 1, kMoreThanSockets);
  start(true), start(false);
  run(false);
  runUntilSomeHasArrived();
  lane(true).takeBack();
  std::ranges::fill(input_, kCallers);
  driveUntilReady();
  EXPECT_EQ(run(false), LaneState::kDone);
  EXPECT_TRUE(output_ == sent_);
}

TEST_P(BuffersTest, APeerThatIsGoneIsTold) {
  open(kMoreThanSockets, 1, kMoreThanSockets);
  start(true), start(false);
  run(false);
  runUntilSomeHasArrived();
  ends_[0].reset();
  LaneState received = LaneState::kBlocked;
  const auto deadline = Deadline::in(longWait());
  while (received == LaneState::kBlocked && !deadline.passed()) received = run(false);
  EXPECT_EQ(received, LaneState::kFailed);
  EXPECT_NE(lane(false).failure().text.find("ended in the middle of a slot"), std::string::npos)
      << lane(false).failure().text;
  lane(false).takeBack();
}

// Threads of other streams drive the same links all the time.
class Drivers {
 public:
  explicit Drivers(const ConnectionPair& ends)
      : thread_([&ends, this] {
          while (!over_)
            for (const auto& end : ends) end->recv.driver->drive(), std::this_thread::yield();
        }) {}
  ~Drivers() {
    over_ = true;
    thread_.join();
  }
  Drivers(const Drivers&) = delete;
  Drivers& operator=(const Drivers&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST_P(BuffersTest, OtherThreadsMayDrive) {
  open(32 << 10, 4, 100 * (32 << 10) + 5);
  const Drivers others(ends_);
  for (uint64_t number = 0; number < 5; ++number) {
    output_.assign(output_.size(), kCallers);
    start(true, number), start(false, number);
    runBoth();
  }
}

TEST_P(BuffersTest, OtherThreadsTouchNoBufferOfACallThatHasFailed) {
  constexpr uint32_t kSlotBytes = 512 << 10;
  for (int turn = 0; turn < 6; ++turn) {
    open(kSlotBytes, 2, 2 * kSlotBytes);
    const Drivers others(ends_);
    start(true), start(false);
    for (int i = 0; i <= 2 * turn; ++i) run(false), run(true);
    lane(false).takeBack();
    lane(true).takeBack();
    std::ranges::fill(output_, kCallers);
    std::ranges::fill(input_, kCallers);
    for (int i = 0; i < 200 && !(ends_[0]->send.drained() && ends_[1]->recv.ready()); ++i)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    EXPECT_TRUE(holds(kCallers, output_));
    // Its first half is in the first slot, unless the lane has had it.
    const link::RecvEnd& end = ends_[1]->recv;
    if (end.received == 0 && end.ready() && end.carried() == link::PayloadLocation::kInSlot) {
      EXPECT_EQ(std::memcmp(end.payload(kSlotBytes), sent_.data(), kSlotBytes), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tcp, BuffersTest, testing::Values("clear", "chacha", "aes"),
                         [](const testing::TestParamInfo<std::string>& chosen) { return chosen.param; });

}  // namespace
}  // namespace tutti::test

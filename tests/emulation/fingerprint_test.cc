// A kernel takes a slot of its own call alone, run by its own plan: one bit of another fingerprint is a mismatch.
#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "emulation/lone_rank.h"
#include "schedule/algorithm.h"
#include "support/patience.h"

namespace tutti::test {
namespace {

// Runs the kernel for a message from rank 0 to rank 1. There is no rank 0: the test posts what has come.
class LoneReceiver {
 public:
  static constexpr uint32_t kDepth = 8, kSlotBytes = 1024, kBytes = 16;

  explicit LoneReceiver(Protocol protocol) : protocol_(protocol), schedule_(schedule::buildReceive(1, 2, 0)) {
    rank_.seat().deadlineNs = static_cast<uint64_t>(longWait() / std::chrono::nanoseconds(1));  // for what never comes
    header_ = rank_.open(protocol, 0).fifo.headers;
    call_.collective = Collective::kSendRecv;
    call_.root = 0;
    call_.recv = output_;
    call_.count = kBytes;
  }

  link::Fingerprint expected() const { return plain().fingerprint; }

  // What the kernel says of a slot that another rank posted so.
  device::Report receive(const link::Fingerprint& fingerprint, uint32_t bytes) {
    header_->fingerprint = fingerprint;
    header_->bytes = bytes;
    header_->sequence.store(1, std::memory_order_release);  // with awaitPosted in the kernel
    return rank_.run(schedule_, plain(), protocol_);
  }

 private:
  static constexpr uint32_t kNumber = 5;  // of the operation
  engine::LaneWork plain() const { return comm::toWork(call_, kNumber, schedule_, kSlotBytes / 2, 0, 1); }

  const Protocol protocol_;
  const schedule::Schedule schedule_;
  LoneRank rank_{2, kSlotBytes, kDepth, kNumber};
  link::SlotHeader* header_ = nullptr;
  comm::Call call_;
  std::byte output_[kBytes] = {};
};

class DeviceFingerprint : public ::testing::TestWithParam<Protocol> {
 protected:
  LoneReceiver receiver_{GetParam()};
};

TEST_P(DeviceFingerprint, IsComparedToTheLastBit) {
  for (uint32_t bit = 0; bit < 128; ++bit) {
    auto words = receiver_.expected().words();
    words[bit / 64] ^= uint64_t{1} << bit % 64;
    const auto other = std::bit_cast<link::Fingerprint>(words);
    const device::Report report = receiver_.receive(other, LoneReceiver::kBytes);
    ASSERT_EQ(report.fault, device::Fault::kMismatch) << "bit " << bit;
    EXPECT_EQ(report.peer, 0);
    EXPECT_EQ(report.theirs, other) << "bit " << bit;
    EXPECT_EQ(report.mine, receiver_.expected());
  }
}

// The same call: that its length differs is another trouble.
TEST_P(DeviceFingerprint, OfTheSameCallIsNoMismatch) {
  const device::Report report = receiver_.receive(receiver_.expected(), LoneReceiver::kBytes - 1);
  EXPECT_EQ(report.fault, device::Fault::kBytes);
  EXPECT_EQ(report.bytes, LoneReceiver::kBytes - 1);
  EXPECT_EQ(report.expected, LoneReceiver::kBytes);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceFingerprint, ::testing::ValuesIn(kEveryProtocol),
                         [](const auto& protocol) { return std::string(nameOf(protocol.param)); });

}  // namespace
}  // namespace tutti::test

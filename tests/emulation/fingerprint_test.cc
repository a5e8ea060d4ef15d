// A kernel takes a slot of its own call alone, run by its own plan: one bit of another fingerprint is a mismatch.
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "comm/call.h"
#include "emulation/gpu_ranks.h"
#include "kernels/cuda/collective.h"
#include "schedule/algorithm.h"
#include "support/patience.h"

namespace tutti::test {
namespace {

// Runs the kernel for a message from rank 0 to rank 1. There is no rank 0: the test posts what has come.
class LoneReceiver {
 public:
  static constexpr uint32_t kDepth = 8, kSlotBytes = 1024, kBytes = 16;

  explicit LoneReceiver(Protocol protocol)
      : protocol_(protocol),
        schedule_(schedule::buildReceive(1, 2, 0)),
        memory_(link::Fifo::bytesFor(kSlotBytes, kDepth) + 128),
        ends_(6) {
    auto* const aligned = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory_.data()) + 127) / 128 * 128);
    seat_.sendEnds = seat_.recvEnds = ends_.data();
    seat_.operations = &operations_;
    seat_.reporting = &reporting_;
    seat_.directSlots = &directSlots_;
    seat_.abort = &abort_;
    seat_.report = &report_;
    seat_.progress = &progress_;
    seat_.size = 2;
    seat_.deadlineNs = static_cast<uint64_t>(longWait() / std::chrono::nanoseconds(1));  // for data that never comes
    ends_[seat_.endIndex(protocol, 0, 0)].fifo = fifo_ = link::Fifo::over(aligned, kSlotBytes, kDepth);
    call_.collective = Collective::kSendRecv;
    call_.root = 0;
    call_.recv = output_;
    call_.count = kBytes;
  }

  link::Fingerprint expected() const { return plain().fingerprint; }

  // What the kernel says of a slot that another rank posted so.
  cuda::Report receive(const link::Fingerprint& fingerprint, uint32_t bytes) {
    fifo_.headers[0].fingerprint = fingerprint;
    fifo_.headers[0].bytes = bytes;
    fifo_.headers[0].sequence.store(1, std::memory_order_release);  // with awaitPosted in the kernel
    const engine::Work plain = this->plain();
    cuda::Launch launch;
    launch.count = 1;
    cuda::Work& work = launch.works[0];
    work.seat = seat_;
    work.program.steps = schedule_.steps.data();
    work.program.operands = schedule_.operands.data();
    work.program.inPeers = schedule_.inPeers.data();
    work.program.inCount = 1;
    work.program.stepCount = static_cast<uint32_t>(schedule_.steps.size());
    work.output = output_;
    work.layout = plain.layout;
    work.arithmetic = plain.arithmetic;
    work.fingerprint = plain.fingerprint;
    work.protocol = protocol_;
    EXPECT_EQ(cuda::launchCollective(launch, 1, nullptr), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    reporting_ = 0;
    return std::exchange(report_, {});
  }

 private:
  static constexpr uint32_t kNumber = 5;  // of the operation
  engine::Work plain() const { return comm::toWork(call_, kNumber, schedule_, kSlotBytes / 2, 0, 1); }

  const Protocol protocol_;
  const schedule::Schedule schedule_;
  std::vector<std::byte> memory_;
  std::vector<cuda::End> ends_;
  link::Fifo fifo_;
  comm::Call call_;
  std::byte output_[kBytes] = {};
  cuda::Seat seat_;
  cuda::Report report_;
  cuda::Progress progress_;
  uint32_t operations_ = kNumber, reporting_ = 0, directSlots_ = 0, abort_ = 0;
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
    const cuda::Report report = receiver_.receive(other, LoneReceiver::kBytes);
    ASSERT_EQ(report.trouble, cuda::Trouble::kMismatch) << "bit " << bit;
    EXPECT_EQ(report.peer, 0);
    EXPECT_EQ(report.theirs, other) << "bit " << bit;
    EXPECT_EQ(report.mine, receiver_.expected());
  }
}

// The same call: that its length differs is another trouble.
TEST_P(DeviceFingerprint, OfTheSameCallIsNoMismatch) {
  const cuda::Report report = receiver_.receive(receiver_.expected(), LoneReceiver::kBytes - 1);
  EXPECT_EQ(report.trouble, cuda::Trouble::kBytes);
  EXPECT_EQ(report.bytes, LoneReceiver::kBytes - 1);
  EXPECT_EQ(report.expected, LoneReceiver::kBytes);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceFingerprint, ::testing::Values(Protocol::kSimple, Protocol::kLL, Protocol::kLL128),
                         [](const auto& protocol) { return std::string(nameOf(protocol.param)); });

}  // namespace
}  // namespace tutti::test

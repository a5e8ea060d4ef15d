// The flags of protocol LL wrap around. With few bits they do so many times within a test.
//
// A receiver knows that a line has arrived by the flag in it, so a slot that is about to be filled must hold no line
// with the flag that it will get: one that a long message left there a whole turn of the flags ago.
#include <gtest/gtest.h>

#include <random>

#include "emulation/gpu_ranks.h"
#include "emulation/lone_rank.h"
#include "schedule/algorithm.h"

namespace tutti::test {
namespace {

// --- whole collectives ---

class DeviceFlags : public ::testing::TestWithParam<int> {};

TEST_P(DeviceFlags, WrapAroundUnderMessagesOfAllLengths) {
  constexpr size_t kSlot = (16 << 10) / 2 / 4;  // floats that a slot carries
  const GpuRanks gpu(3, {{"TUTTI_ALGO", "ring"},
                         {"TUTTI_PROTOCOL", "ll"},
                         {"TUTTI_CHANNELS", "1"},
                         {"TUTTI_LL_FLAG_BITS", std::to_string(GetParam())}});
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  for (size_t slots = 0, i = 0; slots < 3 * (size_t{1} << GetParam()) + 50; ++i) {
    const size_t lot = random() % 8;
    faults::Operation operation;
    operation.kind = faults::Kind::kBroadcast;
    operation.count = lot < 4 ? 1 + random() % 40 : lot < 7 ? 1 + random() % kSlot : random() % (4 * kSlot);
    operation.salt = i;
    ASSERT_EQ(gpu.run(operation), "") << "operation " << i;
    slots += (operation.count + kSlot - 1) / kSlot;
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceFlags, ::testing::Values(6, 8),
                         [](const auto& bits) { return "of" + std::to_string(bits.param) + "Bits"; });

// --- a sender's slots, looked at before each is filled ---

// Runs the kernel for messages from rank 0 to rank 1. There is no rank 1: the test takes what is sent.
class LoneSender {
 public:
  static constexpr uint32_t kDepth = 8, kSlotBytes = 1024, kMost = kSlotBytes / 2;  // bytes that a slot carries

  explicit LoneSender(uint64_t flagMask) : schedule_(schedule::buildSend(0, 2, 1)) {
    rank_.seat().llFlagMask = flagMask;
    rank_.open(Protocol::kLL, 1);
  }

  // A message that fills one slot, and takes it.
  void send(size_t bytes) {
    const std::vector<std::byte> data(bytes, std::byte{0xff});
    comm::Call call;
    call.collective = Collective::kSendRecv;
    call.sends = true;
    call.root = 1;
    call.send = data.data();
    call.count = bytes;
    const engine::LaneWork plain = comm::toWork(call, 0, schedule_, kMost, 0, 1);
    ASSERT_EQ(rank_.run(schedule_, plain, Protocol::kLL).ready, 0u);
    end().fifo.released->value.store(end().passed, std::memory_order_release);  // with awaitRoom in the kernel
  }

  uint64_t next() { return end().passed; }
  // Lines of the next slot that hold the flag already.
  size_t linesWith(uint32_t flag) {
    const auto* const words =
        reinterpret_cast<const uint32_t*>(end().fifo.slots + next() % kDepth * size_t{kSlotBytes});
    size_t lines = 0;
    for (size_t i = 0; i < kSlotBytes / 4; i += 4) lines += words[i + 1] == flag && words[i + 3] == flag;
    return lines;
  }

 private:
  device::End& end() { return rank_.end(Protocol::kLL, 1); }

  const schedule::Schedule schedule_;
  LoneRank rank_{2, kSlotBytes, kDepth};
};

// `bytesOf(n)`: the length of the message in slot number n.
template <class BytesOf>
void expectFreshFlags(BytesOf bytesOf) {
  constexpr uint64_t kMask = 63;
  LoneSender sender(kMask);
  while (sender.next() < 6 * (kMask + 1)) {
    const uint64_t number = sender.next();
    const auto flag = static_cast<uint32_t>((number + 1) & kMask);
    // Memory is zeroed, and the flag of the first slots is not zero.
    ASSERT_EQ(sender.linesWith(flag), 0u) << "slot " << number << ", flag " << flag;
    sender.send(bytesOf(number));
    ASSERT_EQ(sender.next(), number + 1);
  }
}

TEST(DeviceFlagsOfASender, AreFreshAfterShortMessages) {
  expectFreshFlags([](uint64_t) { return size_t{8}; });
}

TEST(DeviceFlagsOfASender, AreFreshAfterOneLongMessageOfEachSlot) {
  expectFreshFlags([](uint64_t number) { return number / LoneSender::kDepth == 2 ? size_t{LoneSender::kMost} : 8; });
}

TEST(DeviceFlagsOfASender, AreFreshAfterMessagesOfAnyLength) {
  std::mt19937_64 random(1);
  expectFreshFlags([&](uint64_t) { return 1 + random() % LoneSender::kMost; });
}

}  // namespace
}  // namespace tutti::test

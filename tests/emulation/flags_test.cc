// The flags of protocol LL wrap around. With few bits they do so many times within a test.
//
// A receiver knows that a line has arrived by the flag in it, so no line may still hold the flag of one turn of the
// flags when the next turn comes to it. What could go wrong goes wrong where messages are short nearly always: the ends
// of the slots keep what they hold until a long message comes. So here the long messages come when the flags are the
// ones that have been there before.
#include <gtest/gtest.h>

#include <random>

#include "emulation/gpu_ranks.h"

namespace tutti::testing {
namespace {

using faults::Kind;
using faults::Operation;

constexpr size_t kShort = 2, kDepth = 8;      // a message of one line; the slots of a link
constexpr size_t kSlot = (16 << 10) / 2 / 4;  // what one slot carries of floats, with one channel

class DeviceFlags : public ::testing::TestWithParam<int> {
 protected:
  static GpuRanks ranks(int size) {
    return GpuRanks(size, {{"TUTTI_ALGO", "ring"},
                           {"TUTTI_PROTOCOL", "ll"},
                           {"TUTTI_CHANNELS", "1"},
                           {"TUTTI_LL_FLAG_BITS", std::to_string(GetParam())}});
  }
  static size_t turn() { return size_t{1} << GetParam(); }
  static std::string broadcast(const GpuRanks& gpu, size_t count, uint64_t salt) {
    Operation operation;
    operation.kind = Kind::kBroadcast;
    operation.count = count;
    operation.salt = salt;
    return gpu.run(operation);
  }
};

TEST_P(DeviceFlags, WrapAroundUnderMessagesOfAllLengths) {
  const GpuRanks gpu = ranks(3);
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  for (size_t slots = 0, i = 0; slots < 3 * turn() + 50; ++i) {
    const size_t lot = random() % 8;
    const size_t count = lot < 4 ? 1 + random() % 40 : lot < 7 ? 1 + random() % kSlot : random() % (4 * kSlot);
    ASSERT_EQ(broadcast(gpu, count, i), "") << "operation " << i;
    slots += (count + kSlot - 1) / kSlot;
  }
}

// Slot number n (from 0) has the flag n + 1.
TEST_P(DeviceFlags, OfAnEarlierTurnAreNotTakenForNewOnes) {
  const GpuRanks gpu = ranks(2);
  for (size_t n = 0; n < 5 * turn(); ++n) {
    const size_t flag = (n + 1) % turn();
    const size_t half = turn() / 2;
    const bool last = n + 1 > 2 * turn() && flag % half >= half - kDepth;  // of a turn, or of half of it
    const bool first = n + 1 >= turn() && flag < kDepth;
    ASSERT_EQ(broadcast(gpu, last || first ? kSlot : kShort, n), "") << "slot " << n << ", flag " << flag;
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceFlags, ::testing::Values(6, 8),
                         [](const auto& bits) { return "of" + std::to_string(bits.param) + "Bits"; });

}  // namespace
}  // namespace tutti::testing

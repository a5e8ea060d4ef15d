// Operations that wait in streams, through the C API: every collective and algorithm, and messages.
#include <gtest/gtest.h>

#include <set>

#include "emulation/gpu_ranks.h"
#include "emulation/pinned_memory.h"
#include "schedule/schedule.h"

namespace tutti::test {
namespace {

using faults::Operation;

// Counts around a word and a slot, and odd ones: with 1 MiB, 8 ranks have slots of 32 KiB.
const std::vector<size_t> kStreamedCounts =
    kSanitized ? std::vector<size_t>{0, 33, 40'001} : std::vector<size_t>{0, 1, 7, 1000, 100'001};
const std::vector<int> kStreamedSizes = kSanitized ? std::vector<int>{3} : std::vector<int>{1, 2, 3, 5, 8};

class StreamedCollective : public ::testing::TestWithParam<std::string> {
 protected:
  InPinnedMemory memory_;
};

TEST_P(StreamedCollective, GivesRightResults) {
  for (const int size : kStreamedSizes) {
    const GpuRanks gpu(
        size, settingsOf("stream") + std::vector<Setting>{{"TUTTI_ALGO", GetParam()}, {"TUTTI_GROUP_SIZE", "2"}});
    for (const Operation& operation : everyKind(size, kStreamedCounts))
      ASSERT_EQ(gpu.run(operation), "") << size << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(All, StreamedCollective,
                         ::testing::Values("ring", "tree", "oneshot", "twoshot", "halving", "bruck", "direct",
                                           "hierarchical", "doubling", "twopass"),
                         [](const auto& algorithm) { return algorithm.param; });

}  // namespace
}  // namespace tutti::test

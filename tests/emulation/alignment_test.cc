// Buffers of a GPU may begin at any byte and hold any number of elements, in place or not: the bits are the host's.
#include <gtest/gtest.h>

#include "base/types.h"
#include "device/protocol.h"
#include "emulation/reductions.h"

namespace tutti::test {
namespace {

using faults::Kind;

class DeviceAlignment : public ::testing::TestWithParam<Protocol> {
 protected:
  static void expectTheSame(const std::vector<ReductionJob>& jobs, int ranks, const std::string& algorithm) {
    const GpuRanks gpu(
        ranks,
        {{"TUTTI_ALGO", algorithm}, {"TUTTI_PROTOCOL", std::string(nameOf(GetParam()))}, {"TUTTI_CHANNELS", "2"}});
    EXPECT_EQ(firstDifference(jobs, runOnHost(jobs, ranks, algorithm), runOnGpu(jobs, gpu)), "") << algorithm;
  }
};

TEST_P(DeviceAlignment, EveryShortCountIsRight) {
  std::vector<ReductionJob> jobs;
  for (size_t count = 1; count <= 70; count += kThreadSanitized ? 23 : kSanitized ? 3 : 1)
    for (const bool inPlace : {false, true})
      jobs.push_back({Kind::kAllReduce, tuttiFloat32, tuttiSum, count, 0, 0, inPlace, 2 * count + inPlace});
  for (const char* algorithm : {"ring", "oneshot"}) expectTheSame(jobs, 3, algorithm);
}

TEST_P(DeviceAlignment, BuffersMayBeginAtAnyByte) {
  std::vector<ReductionJob> jobs;
  uint64_t salt = 0;
  using Types = std::vector<tuttiDataType_t>;
  using Sizes = std::vector<size_t>;
  const Sizes skews = kThreadSanitized ? Sizes{0, 1} : Sizes{0, 1, 2, 4, 8};
  for (const auto type :
       kSanitized ? Types{tuttiFloat32, tuttiBfloat16} : Types{tuttiFloat32, tuttiInt32, tuttiFloat16, tuttiBfloat16})
    for (const size_t send : skews)
      for (const size_t recv : skews)
        for (const size_t count : kSanitized ? Sizes{61} : Sizes{61, 1033})
          jobs.push_back({Kind::kAllReduce, type, tuttiSum, count, send, recv, false, ++salt});
  const size_t apart = jobs.size();
  for (size_t i = 0; i < apart; ++i)
    if (jobs[i].recvSkew == 0) {
      jobs.push_back(jobs[i]);
      jobs.back().inPlace = true;
    }
  expectTheSame(jobs, 3, "ring");
}

INSTANTIATE_TEST_SUITE_P(All, DeviceAlignment, ::testing::ValuesIn(kEveryProtocol),
                         [](const auto& protocol) { return std::string(nameOf(protocol.param)); });

}  // namespace
}  // namespace tutti::test

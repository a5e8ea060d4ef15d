// Calls on GPUs with a configuration of their own: requests, persistent calls, algorithms, tags.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "emulation/device_fixture.h"
#include "emulation/gpu_ranks.h"
#include "emulation/pinned_memory.h"
#include "support/every_call.h"

namespace tutti::test {
namespace {

using device::test::Stream;

class DeviceRequest : public ::testing::TestWithParam<const char*> {
 protected:
  const InPinnedMemory memory_;
};
INSTANTIATE_TEST_SUITE_P(By, DeviceRequest, ::testing::Values("simple", "ll", "copy", "stream"),
                         [](const auto& way) { return std::string(way.param); });

// The ranks' values, in memory that a GPU reaches.
struct Values {
  explicit Values(int ranks) : in(static_cast<size_t>(ranks)), out(in.size(), -1) {
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i) + 1;
  }
  tuttiResult_t reduce(const GpuRanks& gpu, int rank, cudaStream_t stream, const tuttiCallConfig_t& config,
                       tuttiRedOp_t op = tuttiSum) {
    const auto i = static_cast<size_t>(rank);
    return tuttiAllReduceConfig(&in[i], &out[i], 1, tuttiInt32, op, gpu[rank], stream, &config);
  }
  std::pmr::vector<int> in, out;
};

std::string lastText() { return tuttiGetLastError(nullptr); }

TEST_P(DeviceRequest, OperationsOfEveryKindWithRequestsAndPersistent) {
  const GpuRanks gpu(3, settingsOf(GetParam()));
  for (faults::Operation operation : everyKind(3, {1, 300}))
    for (const auto asking : {faults::Asking::kRequest, faults::Asking::kPersistent}) {
      operation.asking = asking;
      operation.tag = 5;
      ASSERT_EQ(gpu.run(operation), "");
    }
}

TEST_P(DeviceRequest, ADeadlineOfOneCallIsRefused) {
  const GpuRanks gpu(2, settingsOf(GetParam()));
  const Stream stream;
  Values values(2);
  tuttiCallConfig_t config = callConfig();
  config.timeoutMs = 700;
  EXPECT_EQ(values.reduce(gpu, 0, stream, config), tuttiInvalidArgument);
  EXPECT_NE(lastText().find("config.timeoutMs is 700, but calls on a GPU have the timeout of their communicator"),
            std::string::npos)
      << lastText();
}

TEST_P(DeviceRequest, WaitingForItIsWaitingForTheOperation) {
  const GpuRanks gpu(2, settingsOf(GetParam()));
  const Stream one, other;
  Values values(2);
  tuttiRequest_t requests[2] = {};
  tuttiCallConfig_t config = callConfig(&requests[0]);
  check(values.reduce(gpu, 0, one, config), "rank 0's call", gpu[0]);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(tuttiRequestTest(requests[0]), tuttiInProgress);
  config.request = &requests[1];
  check(values.reduce(gpu, 1, other, config), "rank 1's call", gpu[1]);
  for (const tuttiRequest_t request : requests) EXPECT_EQ(tuttiRequestWait(request), tuttiSuccess) << lastText();
  EXPECT_EQ(values.out[0], 3);
  EXPECT_EQ(values.out[1], 3);
  for (const tuttiRequest_t request : requests) {
    EXPECT_EQ(tuttiRequestTest(request), tuttiSuccess);
    EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
  }
  gpu.finish(one);
  gpu.finish(other);
}

TEST_P(DeviceRequest, APersistentCallRunsAgainAndAgain) {
  const GpuRanks gpu(2, settingsOf(GetParam()));
  const Stream stream;
  Values values(2);
  std::vector<tuttiRequest_t> requests(2);
  inGroup([&] {
    for (int rank = 0; rank < 2; ++rank)
      check(values.reduce(gpu, rank, stream, callConfig(&requests[size_t(rank)], TUTTI_CALL_PERSISTENT)), "the call",
            gpu[rank]);
  });
  gpu.finish(stream);
  EXPECT_EQ(values.out[0], -1) << "nothing moves before a start";
  for (int round = 1; round < 6; ++round) {
    values.in[0] = round;
    inGroup([&] {
      for (const tuttiRequest_t request : requests) check(tuttiRequestStart(request), "the start");
    });
    for (const tuttiRequest_t request : requests) EXPECT_EQ(tuttiRequestWait(request), tuttiSuccess) << lastText();
    EXPECT_EQ(values.out[0], round + 2);
    EXPECT_EQ(values.out[1], round + 2);
    gpu.together([&](int rank) { return tuttiBarrier(gpu[rank], stream); }, stream);
  }
  check(tuttiRequestStart(requests[0]), "the start", gpu[0]);
  EXPECT_EQ(tuttiRequestStart(requests[0]), tuttiInvalidUsage);
  EXPECT_NE(lastText().find("still runs"), std::string::npos) << lastText();
  const Stream other;
  check(values.reduce(gpu, 1, other, callConfig()), "the other rank's call", gpu[1]);
  EXPECT_EQ(tuttiRequestWait(requests[0]), tuttiSuccess);
  for (const tuttiRequest_t request : requests) EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
  gpu.finish(other);
}

TEST_P(DeviceRequest, ACaptureGivesNone) {
  const GpuRanks gpu(1, settingsOf(GetParam()));
  const Stream stream;
  Values values(1);
  tuttiRequest_t request = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(values.reduce(gpu, 0, stream, callConfig(&request)), tuttiInvalidUsage);
  EXPECT_NE(lastText().find("captures a CUDA graph"), std::string::npos) << lastText();
  EXPECT_EQ(request, nullptr);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  check(values.reduce(gpu, 0, stream, callConfig(&request)), "the call", gpu[0]);
  EXPECT_EQ(tuttiRequestWait(request), tuttiSuccess);
  EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
}

// Ready is what was made so before the rest was refused; the start has not come to it.
TEST(DeviceRequestOf, AStartThatIsRefusedWithItsGroupHasEnded) {
  const InPinnedMemory memory;
  const GpuRanks gpu(1, {{"TUTTI_GPU_ARGUMENT_KIB", "1"}, {"TUTTI_CHANNELS", "1"}});
  Values values(1);
  tuttiRequest_t request = nullptr;
  const size_t count = 1, from = 0;
  CHECK_TUTTI(tuttiGroupStart());
  check(values.reduce(gpu, 0, nullptr, callConfig(&request, TUTTI_CALL_PERSISTENT)), "the call", gpu[0]);
  check(tuttiRequestStart(request), "the start");
  for (int i = 0; i < 30; ++i)
    check(tuttiAllToAllV(&values.in[0], &count, &from, &values.out[0], &count, &from, tuttiInt32, gpu[0], nullptr),
          "a call that takes arguments", gpu[0]);
  EXPECT_EQ(tuttiGroupEnd(), tuttiInvalidUsage);
  EXPECT_EQ(tuttiRequestTest(request), tuttiInvalidUsage);
  EXPECT_NE(lastText().find("smaller groups"), std::string::npos) << lastText();
  EXPECT_EQ(tuttiRequestWait(request), tuttiInvalidUsage);
  check(tuttiRequestStart(request), "the start");
  EXPECT_EQ(tuttiRequestWait(request), tuttiSuccess) << lastText();
  EXPECT_EQ(values.out[0], 1);
  EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
}

TEST_P(DeviceRequest, AFailedOperationSaysSo) {
  const GpuRanks gpu(2, settingsOf(GetParam()));
  const Stream one, other;
  Values values(2);
  tuttiRequest_t requests[2] = {};
  tuttiCallConfig_t config = callConfig(&requests[0]);
  config.tag = 7;
  check(values.reduce(gpu, 0, one, config), "rank 0's call", gpu[0]);
  config = callConfig(&requests[1]);
  config.tag = 8;
  check(values.reduce(gpu, 1, other, config), "rank 1's call", gpu[1]);
  for (const tuttiRequest_t request : requests) {
    EXPECT_EQ(tuttiRequestWait(request), tuttiInvalidUsage);
    EXPECT_NE(lastText().find("the tags of all-reduce #0 (int32, 1 element, sum) differ: "), std::string::npos)
        << lastText();
    EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
  }
}

TEST_P(DeviceRequest, LivesOnAfterTheCommunicator) {
  tuttiRequest_t requests[2] = {};
  Values values(2);
  {
    const GpuRanks gpu(2, settingsOf(GetParam()));
    inGroup([&] {
      for (int rank = 0; rank < 2; ++rank)
        check(values.reduce(gpu, rank, nullptr, callConfig(&requests[rank])), "the call", gpu[rank]);
    });
  }
  for (const tuttiRequest_t request : requests) {
    EXPECT_EQ(tuttiRequestWait(request), tuttiSuccess) << lastText();
    EXPECT_EQ(tuttiRequestFree(request), tuttiSuccess);
  }
}

TEST(DeviceCallConfig, AlgorithmsAndChannelsChangeFromCallToCall) {
  const InPinnedMemory memory;
  const GpuRanks gpu(3, {{"TUTTI_PROTOCOL", "simple"}});
  for (int i = 0; i < 2; ++i)
    for (const char* algorithm : {"ring", "tree", "oneshot"})
      for (const int channels : {1, 2, 0}) {
        faults::Operation operation;
        operation.type = tuttiInt32;
        operation.count = 3000;
        operation.algorithm = algorithm;
        operation.channels = channels;
        ASSERT_EQ(gpu.run(operation), "");
        tuttiCommStats_t stats{};
        stats.size = sizeof stats;
        CHECK_TUTTI(tuttiCommGetStats(gpu[0], &stats));
        EXPECT_STREQ(stats.lastAlgorithm, algorithm);
      }
}

}  // namespace
}  // namespace tutti::test

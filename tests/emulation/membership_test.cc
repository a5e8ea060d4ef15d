// Ranks on GPUs that leave some behind, grow by others, and duplicate their communicator.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "emulation/control.h"
#include "emulation/gpu_ranks.h"

namespace tutti::test {
namespace {

class DeviceMembership : public ::testing::Test {
 protected:
  void SetUp() override { emulation::setDeviceCount(2); }
  void TearDown() override { emulation::setDeviceCount(1); }

  static tuttiConfig_t onGpu(int device) {
    tuttiConfig_t config = testConfig();
    config.device = device == 0 ? "cuda:0" : "cuda:1";
    return config;
  }
  // Driven by one thread: ranks of one GPU wait for each other on its stream.
  static void expectSums(const std::vector<tuttiComm_t>& comms) {
    std::vector<int> values(comms.size(), 1);
    inGroup([&] {
      for (size_t r = 0; r < comms.size(); ++r)
        CHECK_TUTTI(tuttiAllReduce(&values[r], &values[r], 1, tuttiInt32, tuttiSum, comms[r], nullptr));
    });
    for (const int device : {0, 1}) {
      ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    }
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(values, std::vector<int>(comms.size(), static_cast<int>(comms.size())));
  }
  static void end(const std::vector<tuttiComm_t>& comms) {
    for (const tuttiComm_t comm : comms) CHECK_TUTTI(tuttiCommDestroy(comm));
  }

  const Settings settings_{{{"TUTTI_GPU_BUFFER_MIB", "1"}, {"TUTTI_CHANNELS", "2"}}};
};

TEST_F(DeviceMembership, GrowsDuplicatesAndLeavesOut) {
  tuttiUniqueId id, more;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  std::vector<tuttiComm_t> old(2), grown(3), twins(2), rest(2);
  inGroup([&] {
    for (int r = 0; r < 2; ++r) {
      const tuttiConfig_t config = onGpu(r);
      CHECK_TUTTI(tuttiCommInitRankConfig(&old[size_t(r)], 2, id, r, &config));
    }
  });
  CHECK_TUTTI(tuttiCommGetUniqueId(old[0], &more));
  inGroup([&] {
    for (int r = 0; r < 2; ++r)
      CHECK_TUTTI(tuttiCommGrow(old[size_t(r)], 3, r == 0 ? &more : nullptr, -1, &grown[size_t(r)], nullptr));
    const tuttiConfig_t config = onGpu(0);
    CHECK_TUTTI(tuttiCommGrow(nullptr, 3, &more, 2, &grown[2], &config));
  });
  expectSums(grown);
  inGroup([&] {
    for (size_t r = 0; r < 2; ++r) CHECK_TUTTI(tuttiCommDuplicate(old[r], &twins[r], nullptr));
  });
  expectSums(twins);
  end(twins);
  const int leftOut = 0;
  inGroup([&] {
    for (size_t r = 1; r < 3; ++r) CHECK_TUTTI(tuttiCommShrink(grown[r], &leftOut, 1, &rest[r - 1], nullptr, 0));
  });
  expectSums(rest);
  for (const auto& comms : {rest, grown, old}) end(comms);
}

TEST_F(DeviceMembership, AnOldRankOnTheHostAndANewOneOnAGpuAreToldApart) {
  tuttiUniqueId id, more;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiComm_t old = nullptr;
  const tuttiConfig_t host = testConfig(), gpu = onGpu(0);
  CHECK_TUTTI(tuttiCommInitRankConfig(&old, 1, id, 0, &host));
  CHECK_TUTTI(tuttiCommGetUniqueId(old, &more));
  runRanks(2, [&](int r) {
    tuttiComm_t grown = nullptr;
    const tuttiResult_t result =
        r == 0 ? tuttiCommGrow(old, 2, &more, -1, &grown, nullptr) : tuttiCommGrow(nullptr, 2, &more, 1, &grown, &gpu);
    EXPECT_EQ(result, tuttiInvalidUsage);
    EXPECT_NE(std::string(tuttiGetLastError(nullptr)).find("rank 0 has its buffers in host memory, rank 1 on a GPU"),
              std::string::npos)
        << tuttiGetLastError(nullptr);
  });
  CHECK_TUTTI(tuttiCommDestroy(old));
}

}  // namespace
}  // namespace tutti::test

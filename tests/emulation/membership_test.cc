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
  static void expectSum(tuttiComm_t comm, int sum) {
    std::vector<int> values(1'000, 1);
    CHECK_TUTTI(tuttiAllReduce(values.data(), values.data(), values.size(), tuttiInt32, tuttiSum, comm, nullptr));
    int device = 0;
    CHECK_TUTTI(tuttiCommDevice(comm, &device));
    ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    EXPECT_EQ(values, std::vector<int>(1'000, sum));
  }
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
  runRanks(3, [&](int r) { expectSum(grown[size_t(r)], 3); });
  inGroup([&] {
    for (size_t r = 0; r < 2; ++r) CHECK_TUTTI(tuttiCommDuplicate(old[r], &twins[r], nullptr));
  });
  runRanks(2, [&](int r) { expectSum(twins[size_t(r)], 2); });
  const int leftOut = 0;
  inGroup([&] {
    for (size_t r = 1; r < 3; ++r) CHECK_TUTTI(tuttiCommShrink(grown[r], &leftOut, 1, &rest[r - 1], nullptr, 0));
  });
  runRanks(2, [&](int r) { expectSum(rest[size_t(r)], 2); });
  for (const auto& comms : {old, grown, twins, rest})
    for (const tuttiComm_t comm : comms) CHECK_TUTTI(tuttiCommDestroy(comm));
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
    EXPECT_NE(std::string(tuttiGetLastError(nullptr)).find("the ranks disagree"), std::string::npos)
        << tuttiGetLastError(nullptr);
  });
  CHECK_TUTTI(tuttiCommDestroy(old));
}

}  // namespace
}  // namespace tutti::test

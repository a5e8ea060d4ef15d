// One thread that makes all ranks of communicators on GPUs, in groups and in the background.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "emulation/control.h"
#include "emulation/gpu_ranks.h"

namespace tutti::test {
namespace {

tuttiConfig_t onCurrentGpu(int nonBlocking = 0) {
  tuttiConfig_t config = testConfig();
  config.device = "cuda";
  config.nonBlocking = nonBlocking;
  return config;
}

class DeviceMaking : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { emulation::setDeviceCount(2); }
  void TearDown() override {
    destroyAll(comms_);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    emulation::setDeviceCount(1);
  }

  size_t ranks() const { return static_cast<size_t>(GetParam()); }
  // The first half of the ranks on one GPU, the rest on the other: whichever is current when the call is made.
  void initAll(const tuttiConfig_t& config) {
    tuttiUniqueId id;
    CHECK_TUTTI(tuttiGetUniqueId(&id));
    comms_.resize(ranks());
    for (size_t r = 0; r < ranks(); ++r) {
      ASSERT_EQ(cudaSetDevice(r < ranks() / 2 ? 0 : 1), cudaSuccess);
      CHECK_TUTTI(tuttiCommInitRankConfig(&comms_[r], GetParam(), id, static_cast<int>(r), &config));
    }
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  }
  static void expectSums(const std::vector<tuttiComm_t>& comms, int sum) {
    std::vector<int> values(comms.size(), 1);
    inGroup([&] {
      for (size_t r = 0; r < comms.size(); ++r)
        CHECK_TUTTI(tuttiAllReduce(&values[r], &values[r], 1, tuttiInt32, tuttiSum, comms[r], nullptr));
    });
    for (const int device : {0, 1}) {
      EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    }
    EXPECT_EQ(values, std::vector<int>(comms.size(), sum));
  }
  static void await(const std::vector<tuttiComm_t>& comms) {
    for (const tuttiComm_t comm : comms) {
      tuttiResult_t state = tuttiInProgress;
      while (state == tuttiInProgress) {
        CHECK_TUTTI(tuttiCommGetAsyncError(comm, &state));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      check(state, "what is made", comm);
    }
  }
  static void destroyAll(std::vector<tuttiComm_t>& comms) {
    for (const tuttiComm_t comm : comms) CHECK_TUTTI(tuttiCommDestroy(comm));
    comms.clear();
  }

  const Settings settings_{{{"TUTTI_GPU_BUFFER_MIB", "1"},
                            {"TUTTI_CHANNELS", "2"},
                            {"TUTTI_OPERATION_TIMEOUT_MS", std::to_string(longWait().count())}}};
  std::vector<tuttiComm_t> comms_;
};
INSTANTIATE_TEST_SUITE_P(Ranks, DeviceMaking, testing::Values(2, 4));

TEST_P(DeviceMaking, InAGroup) {
  inGroup([&] { initAll(onCurrentGpu()); });
  for (size_t r = 0; r < ranks(); ++r) {
    int device = -1;
    CHECK_TUTTI(tuttiCommDevice(comms_[r], &device));
    EXPECT_EQ(device, r < ranks() / 2 ? 0 : 1);
  }
  expectSums(comms_, GetParam());
  std::vector<tuttiComm_t> halves(ranks()), survivors(ranks());
  inGroup([&] {
    for (size_t r = 0; r < ranks(); ++r)
      CHECK_TUTTI(tuttiCommSplit(comms_[r], static_cast<int>(r % 2), 0, &halves[r], nullptr));
  });
  expectSums(halves, GetParam() / 2);
  destroyAll(halves);
  inGroup([&] {
    for (size_t r = 0; r < ranks(); ++r) CHECK_TUTTI(tuttiCommShrink(comms_[r], nullptr, 0, &survivors[r], nullptr, 0));
  });
  expectSums(survivors, GetParam());
  destroyAll(survivors);
}

TEST_P(DeviceMaking, InTheBackground) {
  const tuttiConfig_t config = onCurrentGpu(1);
  const std::vector<int> devices(ranks(), 1);
  comms_.resize(ranks());
  EXPECT_EQ(tuttiCommInitAllConfig(comms_.data(), GetParam(), devices.data(), &config), tuttiInProgress);
  await(comms_);
  std::vector<tuttiComm_t> children(ranks());
  for (size_t r = 0; r < ranks(); ++r)
    EXPECT_EQ(tuttiCommSplit(comms_[r], 0, -static_cast<int>(r), &children[r], nullptr), tuttiInProgress);
  await(children);
  expectSums(children, GetParam());
  destroyAll(children);
  expectSums(comms_, GetParam());
}

// A rank without its GPU tells the others of its group, who do not wait for it.
TEST_P(DeviceMaking, WithoutTheGpuOfOneRank) {
  tuttiConfig_t config = onCurrentGpu();
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiComm_t good = nullptr, bad = nullptr;
  CHECK_TUTTI(tuttiGroupStart());
  CHECK_TUTTI(tuttiCommInitRankConfig(&good, 2, id, 0, &config));
  config.device = "cuda:4711";
  EXPECT_EQ(tuttiCommInitRankConfig(&bad, 2, id, 1, &config), tuttiSuccess) << "those who come are to hear of it";
  const tuttiResult_t first = tuttiGroupEnd();  // of the two that fail
  EXPECT_TRUE(first == tuttiInvalidArgument || first == tuttiRemoteError) << first;
  EXPECT_NE(std::string(tuttiGetLastError(nullptr)).find("4711"), std::string::npos) << tuttiGetLastError(nullptr);
  CHECK_TUTTI(tuttiCommDestroy(good));
  CHECK_TUTTI(tuttiCommDestroy(bad));
}

}  // namespace
}  // namespace tutti::test

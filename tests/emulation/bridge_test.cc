// Links through host memory, and over TCP.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "emulation/control.h"
#include "emulation/far_ranks.h"

namespace tutti::test {
namespace {

TEST(Bridge, CarriesEveryCollectiveBetweenHosts) {
  const FarRanks ranks(4);
  EXPECT_EQ(ranks.transports(), "p2p,tcp");
  EXPECT_EQ(runAll(ranks, {3, 1000, 40'001}), "");
}

// One row of the fallbacks: the driver refuses one GPU the other's memory.
TEST(Bridge, GoesThroughTheHostWherePeerAccessIsRefused) {
  emulation::setDeviceCount(2);
  emulation::setPeerAccess(false);
  testing::internal::CaptureStderr();
  std::string wrong;
  {
    const GpuRanks ranks(std::vector<int>{0, 1}, {{"TUTTI_DEBUG", "info"}});
    for (const Operation& operation : everyKind(2, {1000})) wrong += ranks.run(operation);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  cudaSetDevice(0);
  emulation::setPeerAccess(true);
  emulation::setDeviceCount(1);
  EXPECT_EQ(wrong, "");
  EXPECT_NE(
      said.find("GPU 0 and that of rank 1 do not reach each other's memory (GPU 0 cannot reach the memory of GPU 1: "
                "neither NVLink nor PCIe peer access joins them); their links go through the host"),
      std::string::npos)
      << said;
}

}  // namespace
}  // namespace tutti::test

// Links through host memory, and over TCP.
#include <gtest/gtest.h>

#include <array>
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
  std::string wrong;
  std::array<char, 4096> said{};
  {
    const GpuRanks ranks(std::vector<int>{0, 1}, {});
    for (const Operation& operation : everyKind(2, {1000})) wrong += ranks.run(operation);
    CHECK_TUTTI(tuttiCommExplain(ranks[0], "all-reduce", 1000, tuttiFloat32, said.data(), said.size()));
  }
  cudaSetDevice(0);
  emulation::setPeerAccess(true);
  emulation::setDeviceCount(1);
  EXPECT_EQ(wrong, "");
  EXPECT_NE(std::string(said.data())
                .find("from GPU to GPU: GPU 0 cannot reach the memory of GPU 1: neither NVLink nor "
                      "PCIe peer access joins them"),
            std::string::npos)
      << said.data();
}

}  // namespace
}  // namespace tutti::test

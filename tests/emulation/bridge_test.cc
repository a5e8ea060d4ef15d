// Links through host memory, and over TCP.
#include <gtest/gtest.h>

#include "emulation/far_ranks.h"

namespace tutti::test {
namespace {

TEST(Bridge, CarriesEveryCollectiveBetweenHosts) {
  const FarRanks ranks(4);
  EXPECT_EQ(ranks.transports(), "p2p,tcp");
  EXPECT_EQ(runAll(ranks, {3, 1000, 40'001}), "");
}

}  // namespace
}  // namespace tutti::test

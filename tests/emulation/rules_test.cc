// Rules for operations, where they run on the emulated GPU.
#include <gtest/gtest.h>

#include "emulation/gpu_ranks.h"
#include "emulation/pinned_memory.h"

namespace tutti::test {
namespace {

std::string runAndName(const GpuRanks& gpu, faults::Kind kind) {
  faults::Operation operation;
  operation.kind = kind;
  operation.count = 100;
  EXPECT_EQ(gpu.run(operation), "");
  return lastAlgorithm(gpu[0]);
}

TEST(RulesOnGpus, OperationsHaveAlgorithmsProtocolsAndChannelsOfTheirOwn) {
  const GpuRanks gpu(3, {{"TUTTI_ALGO", "ring;broadcast:tree;reduce:^ring,direct"},
                         {"TUTTI_PROTOCOL", "ll128;broadcast:simple;sendrecv:^ll"},
                         {"TUTTI_CHANNELS", "2;broadcast:1;all_gather:3"}});
  EXPECT_EQ(explained(gpu[0], "all-reduce", 100).find("chosen: ring, ll128, 2 channels\n"), 0u)
      << explained(gpu[0], "all-reduce", 100);
  EXPECT_EQ(explained(gpu[0], "all-gather", 100).find("chosen: ring, ll128, 3 channels\n"), 0u)
      << explained(gpu[0], "all-gather", 100);
  EXPECT_EQ(explained(gpu[0], "broadcast", 100).find("chosen: tree, simple, 1 channel\n"), 0u)
      << explained(gpu[0], "broadcast", 100);
  EXPECT_NE(explained(gpu[0], "reduce", 100).find("\nnot: ring: not allowed by TUTTI_ALGO"), std::string::npos)
      << explained(gpu[0], "reduce", 100);
  EXPECT_EQ(runAndName(gpu, faults::Kind::kAllReduce), "ring");
  EXPECT_EQ(runAndName(gpu, faults::Kind::kBroadcast), "tree");
  EXPECT_EQ(runAndName(gpu, faults::Kind::kAllGather), "ring");
  EXPECT_EQ(explained(gpu[0], "reduce", 100).find("chosen: " + runAndName(gpu, faults::Kind::kReduce) + ","), 0u);
}

TEST(RulesOnGpus, InStreamsToo) {
  const InPinnedMemory memory;
  const GpuRanks gpu(3, settingsOf("stream") + std::vector<Setting>{{"TUTTI_ALGO", "tree;all_gather:ring"}});
  EXPECT_EQ(runAndName(gpu, faults::Kind::kAllReduce), "tree");
  EXPECT_EQ(runAndName(gpu, faults::Kind::kAllGather), "ring");
}

}  // namespace
}  // namespace tutti::test

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
  EXPECT_EQ(explained(gpu[0], "all-reduce", 100).find("chosen: ring by ll128 over 2 channels, predicted "), 0u)
      << explained(gpu[0], "all-reduce", 100);
  EXPECT_EQ(explained(gpu[0], "all-gather", 100).find("chosen: ring by ll128 over 3 channels, predicted "), 0u)
      << explained(gpu[0], "all-gather", 100);
  EXPECT_EQ(explained(gpu[0], "broadcast", 100).find("chosen: tree by simple over 1 channel, predicted "), 0u)
      << explained(gpu[0], "broadcast", 100);
  EXPECT_NE(explained(gpu[0], "reduce", 100).find("\nnot: ring: not allowed by TUTTI_ALGO"), std::string::npos)
      << explained(gpu[0], "reduce", 100);
  // All that was weighed, as the choice was.
  EXPECT_NE(explained(gpu[0], "all-reduce", 100).find("\nnot: simple: not allowed by TUTTI_PROTOCOL"),
            std::string::npos);
  EXPECT_NE(explained(gpu[0], "reduce", 100).find("\nnot: hierarchical: all ranks are on one host"), std::string::npos)
      << explained(gpu[0], "reduce", 100);
  EXPECT_NE(explainedJson(gpu[0], "reduce", 100).find("\"protocol\": \"ll128\""), std::string::npos);
  EXPECT_NE(explained(gpu[0], "reduce", 100).find("\nlink: p2p to 2 ranks of this host"), std::string::npos)
      << explained(gpu[0], "reduce", 100);
  EXPECT_EQ(runAndName(gpu, faults::Kind::kAllReduce), "ring");
  EXPECT_EQ(runAndName(gpu, faults::Kind::kBroadcast), "tree");
  EXPECT_EQ(runAndName(gpu, faults::Kind::kAllGather), "ring");
  EXPECT_EQ(explained(gpu[0], "reduce", 100).find("chosen: " + runAndName(gpu, faults::Kind::kReduce) + " by "), 0u);
}

TEST(RulesOnGpus, WithoutAnyAllIsWeighed) {
  const GpuRanks gpu(2, {});
  const std::string told = explained(gpu[0], "all-reduce", 100);
  EXPECT_NE(told.find("\nnext: "), std::string::npos) << told;
  EXPECT_EQ(told.find("chosen: " + runAndName(gpu, faults::Kind::kAllReduce) + " by "), 0u) << told;
}

TEST(RulesOnGpus, InStreamsToo) {
  const InPinnedMemory memory;
  const GpuRanks gpu(3, settingsOf("stream") + std::vector<Setting>{{"TUTTI_ALGO", "tree;all_gather:ring"}});
  EXPECT_EQ(runAndName(gpu, faults::Kind::kAllReduce), "tree");
  EXPECT_EQ(runAndName(gpu, faults::Kind::kAllGather), "ring");
}

}  // namespace
}  // namespace tutti::test

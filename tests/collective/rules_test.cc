// TUTTI_ALGO, config.algorithm and a call's own, where they name several algorithms or are for some operations.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/api_ranks.h"
#include "support/every_call.h"
#include "support/variables.h"

namespace {

using namespace tutti::test;

std::string ofAllReduce(tuttiComm_t comm, const char* own = nullptr) {
  int value = 1, ranks = 0;
  CHECK_TUTTI(tuttiCommCount(comm, &ranks));
  tuttiCallConfig_t config = callConfig();
  config.algorithm = own;
  CHECK_TUTTI(tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr, &config));
  EXPECT_EQ(value, ranks);
  return lastAlgorithm(comm);
}

std::string ofBroadcast(tuttiComm_t comm, const char* own = nullptr) {
  int value = 7;
  tuttiCallConfig_t config = callConfig();
  config.algorithm = own;
  CHECK_TUTTI(tuttiBroadcastConfig(&value, &value, 1, tuttiInt32, 0, comm, nullptr, &config));
  return lastAlgorithm(comm);
}

TEST(AlgorithmRules, TwoOperationsHaveTwoAlgorithms) {
  tuttiConfig_t config = testConfig();
  config.algorithm = "tree;AllReduce:halving";
  withCommunicators(3, config, [](tuttiComm_t comm, int) {
    EXPECT_EQ(ofAllReduce(comm), "halving");
    EXPECT_EQ(ofBroadcast(comm), "tree");
    EXPECT_EQ(ofAllReduce(comm), "halving");
    EXPECT_EQ(explained(comm, "all-reduce", 1).find("chosen: halving over"), 0u);
  });
  const Settings set({Setting{"TUTTI_ALGO", "ring;broadcast:ring;all-reduce:tree"}});
  withCommunicators(3, config, [](tuttiComm_t comm, int) {
    EXPECT_EQ(ofAllReduce(comm), "tree");
    EXPECT_EQ(ofBroadcast(comm), "ring");
  });
}

TEST(AlgorithmRules, WhatIsNotAllowedIsExplained) {
  const Settings set({Setting{"TUTTI_ALGO", "allreduce:^oneshot,twoshot;alltoall:ring"}});
  withCommunicators(3, testConfig(), [](tuttiComm_t comm, int) {
    const std::string told = explained(comm, "all-reduce", 1);
    for (const char* name : {"oneshot", "twoshot"})
      EXPECT_NE(told.find("\nnot: " + std::string(name) + ": not allowed by TUTTI_ALGO"), std::string::npos) << told;
    EXPECT_EQ(told.find("\nnot: ring"), std::string::npos) << told;
    EXPECT_EQ(explained(comm, "broadcast", 1).find("not allowed"), std::string::npos);
    EXPECT_NE(explained(comm, "all-to-all", 1).find("\nnot: ring: all-to-all has no such algorithm"),
              std::string::npos);
    const std::string used = ofAllReduce(comm);
    EXPECT_EQ(told.find("chosen: " + used + " over"), 0u) << told;
    EXPECT_TRUE(used != "oneshot" && used != "twoshot");
  });
}

TEST(AlgorithmRules, ACallMaySayWhereTheEnvironmentIsSilent) {
  const Settings set({Setting{"TUTTI_ALGO", "all_reduce:ring"}});
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int) {
    EXPECT_EQ(ofAllReduce(comm, "tree"), "ring");
    EXPECT_EQ(ofBroadcast(comm, "tree"), "tree");
    EXPECT_EQ(ofBroadcast(comm, "ring"), "ring");
  });
}

TEST(AlgorithmRules, ACallMayGiveAList) {
  withCommunicators(3, testConfig(), [](tuttiComm_t comm, int) {
    const std::string usual = ofAllReduce(comm), other = ofAllReduce(comm, ("^" + usual).c_str());
    EXPECT_NE(other, usual);
    EXPECT_EQ(ofAllReduce(comm, (other + "," + usual).c_str()), usual);
    EXPECT_EQ(ofAllReduce(comm), usual);
    int value = 1;
    tuttiCallConfig_t config = callConfig();
    for (const auto& [list, words] :
         {std::pair{"all_reduce:ring", "is for several operations, but a call is one"},
          std::pair{"ring;tree", "is for several operations"}, std::pair{"bruck,", "has an empty name"},
          std::pair{"bruck,bruck", "all-reduce has no algorithm bruck,bruck"}}) {
      config.algorithm = list;
      EXPECT_EQ(tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr, &config),
                tuttiInvalidArgument);
      EXPECT_NE(std::string(tuttiGetLastError(comm)).find(words), std::string::npos) << tuttiGetLastError(comm);
    }
  });
}

TEST(AlgorithmRules, OfChannelsAreForOperationsToo) {
  const Settings set({Setting{"TUTTI_CHANNELS", "3;broadcast:2"}});
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int) {
    EXPECT_NE(explained(comm, "all-reduce", 1).find(" over 3 channels"), std::string::npos);
    EXPECT_NE(explained(comm, "broadcast", 1).find(" over 2 channels"), std::string::npos);
    ofAllReduce(comm), ofBroadcast(comm);
  });
}

TEST(AlgorithmRules, OfChannelsAreInTheConfigurationToo) {
  tuttiConfig_t config = testConfig();
  config.channelRules = "3;broadcast:2";
  const auto expectChannels = [&](const char* ofAllReduces, const char* ofBroadcasts) {
    withCommunicators(2, config, [&](tuttiComm_t comm, int) {
      EXPECT_NE(explained(comm, "all-reduce", 1).find(ofAllReduces), std::string::npos);
      EXPECT_NE(explained(comm, "broadcast", 1).find(ofBroadcasts), std::string::npos);
      ofAllReduce(comm), ofBroadcast(comm);
    });
  };
  expectChannels(" over 3 channels", " over 2 channels");
  const Settings set({Setting{"TUTTI_CHANNELS", "4"}});
  expectChannels(" over 4 channels", " over 4 channels");
}

TEST(AlgorithmRules, WhatTheConfigurationSaysWrongIsNamed) {
  const auto refusalOf = [](auto change) {
    tuttiConfig_t config = testConfig();
    change(config);
    tuttiUniqueId id;
    CHECK_TUTTI(tuttiGetUniqueId(&id));
    tuttiComm_t comm = nullptr;
    EXPECT_EQ(tuttiCommInitRankConfig(&comm, 1, id, 0, &config), tuttiInvalidArgument);
    return std::string(tuttiGetLastError(nullptr));
  };
  const auto isTold = [](const std::string& text, const char* words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  isTold(refusalOf([](tuttiConfig_t& config) { config.channelRules = "all_reduce:99"; }), "config.channelRules: ");
  isTold(refusalOf([](tuttiConfig_t& config) { config.channels = 2, config.channelRules = "3"; }),
         "config.channels is 2 and config.channelRules '3': give one of them");
  isTold(refusalOf([](tuttiConfig_t& config) { config.protocol = "quick"; }), "config.protocol: ");
}

// As they were meant: ranks that say the same in other words join, all others are refused.
TEST(AlgorithmRules, RanksHaveToMeanTheSame) {
  const auto join = [](const char* one, const char* other) {
    std::vector<tuttiResult_t> results(2);
    tuttiUniqueId id;
    CHECK_TUTTI(tuttiGetUniqueId(&id));
    runRanks(2, [&](int rank) {
      tuttiConfig_t config = testConfig();
      config.algorithm = rank == 0 ? one : other;
      tuttiComm_t comm = nullptr;
      results[static_cast<size_t>(rank)] = tuttiCommInitRankConfig(&comm, 2, id, rank, &config);
      if (results[static_cast<size_t>(rank)] != tuttiSuccess) return;
      ofAllReduce(comm);
      CHECK_TUTTI(tuttiCommDestroy(comm));
    });
    return results;
  };
  const std::vector good(2, tuttiSuccess), bad(2, tuttiInvalidUsage);
  EXPECT_EQ(join("tree;allreduce:ring,tree", "All-Reduce:tree,ring;TREE"), good);
  EXPECT_EQ(join("tree;allreduce:ring", "tree"), bad);
  EXPECT_EQ(join("allreduce:ring", "broadcast:ring"), bad);
}

}  // namespace

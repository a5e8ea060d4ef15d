// Ranks of which one has another setting: told to all while they join, with both values, and never by a wrong result.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "support/api_ranks.h"
#include "support/variables.h"

namespace tutti::test {
namespace {

using Adjust = std::function<void(tuttiConfig_t&)>;

// The last of three ranks differs from the others.
void expectRefused(const Adjust& most, const Adjust& last, const std::vector<std::string>& words) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  runRanks(3, [&](int rank) {
    tuttiConfig_t config = testConfig();
    (rank == 2 ? last : most)(config);
    tuttiComm_t comm = nullptr;
    EXPECT_EQ(tuttiCommInitRankConfig(&comm, 3, id, rank, &config), tuttiInvalidUsage) << "rank " << rank;
    const std::string text = tuttiGetLastError(nullptr);
    for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
    if (comm != nullptr) tuttiCommDestroy(comm);
  });
}

const Adjust kNothing = [](tuttiConfig_t&) {};

TEST(Agreement, OnAlgorithmsIsNeeded) {
  expectRefused([](tuttiConfig_t& config) { config.algorithm = "ring"; },
                [](tuttiConfig_t& config) { config.algorithm = "oneshot"; },
                {"disagree on settings", "TUTTI_ALGO (config.algorithm)", "ring on rank", "oneshot on rank 2 ("});
  expectRefused([](tuttiConfig_t& config) { config.algorithm = "tree"; }, kNothing,
                {"TUTTI_ALGO (config.algorithm)", "tree on rank", "not set on rank 2 ("});
}

TEST(Agreement, OnChannelsIsNeeded) {
  expectRefused(kNothing, [](tuttiConfig_t& config) { config.channels = 2; },
                {"TUTTI_CHANNELS (config.channels, config.channelRules)", "not set on rank", "2 on rank 2 ("});
}

TEST(Agreement, OnTransportsIsNeededHoweverTheyAreWritten) {
  expectRefused([](tuttiConfig_t& config) { config.transports = "tcp"; }, kNothing,
                {"TUTTI_TRANSPORT (config.transports), TUTTI_TRANSPORT_PLUGINS", "tcp on rank", " on rank 2 ("});
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  runRanks(2, [&](int rank) {
    tuttiConfig_t config = testConfig();
    config.transports = rank == 0 ? "shm,verbs,tcp" : "^p2p";
    tuttiComm_t comm = nullptr;
    CHECK_TUTTI(tuttiCommInitRankConfig(&comm, 2, id, rank, &config));
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
    CHECK_TUTTI(tuttiCommDestroy(comm));
  });
}

TEST(Agreement, OnTheHeartbeatIsNeeded) {
  expectRefused(kNothing, [](tuttiConfig_t& config) { config.heartbeatMs = 5000; },
                {"TUTTI_HEARTBEAT_MS (config.heartbeatMs)", "20000 on rank", "5000 on rank 2 ("});
}

// Of a setting that is a variable only. The environment is read when a join begins: one by one, in the background.
TEST(Agreement, OnVariablesIsNeeded) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiConfig_t config = testConfig();
  config.nonBlocking = 1;
  tuttiComm_t comms[2] = {};
  for (int rank = 0; rank < 2; ++rank) {
    const Settings own({Setting{"TUTTI_GROUP_SIZE", rank == 0 ? "2" : "1"}});
    EXPECT_EQ(tuttiCommInitRankConfig(&comms[rank], 2, id, rank, &config), tuttiInProgress);
  }
  for (const tuttiComm_t comm : comms) {
    EXPECT_EQ(outcomeOf(comm), tuttiInvalidUsage);
    const std::string text = tuttiGetLastError(comm);
    for (const char* word : {"disagree on settings", "TUTTI_GROUP_SIZE is ", "2 on rank 0 (", "1 on rank 1 ("})
      EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
    CHECK_TUTTI(tuttiCommDestroy(comm));
  }
}

// Beside a unique id as well: whoever sets it relies on it.
TEST(Agreement, OnTheSecretIsNeeded) {
  for (const char* second : {"", "another hidden text"}) {
    tuttiUniqueId id;
    CHECK_TUTTI(tuttiGetUniqueId(&id));
    tuttiConfig_t config = testConfig();
    config.nonBlocking = 1;
    tuttiComm_t comms[2] = {};
    for (int rank = 0; rank < 2; ++rank) {
      const Settings own({Setting{"TUTTI_SECRET", rank == 0 ? "a hidden text" : second}});
      EXPECT_EQ(tuttiCommInitRankConfig(&comms[rank], 2, id, rank, &config), tuttiInProgress);
    }
    for (const tuttiComm_t comm : comms) {
      EXPECT_EQ(outcomeOf(comm), tuttiInvalidUsage);
      const std::string text = tuttiGetLastError(comm);
      for (const char* word : {"the ranks disagree on TUTTI_SECRET (or TUTTI_SECRET_FILE): ", "rank 0 (", "rank 1 ("})
        EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
      EXPECT_EQ(text.find("hidden"), std::string::npos) << text;
      CHECK_TUTTI(tuttiCommDestroy(comm));
    }
  }
}

TEST(Agreement, NamesEverythingThatDiffers) {
  expectRefused([](tuttiConfig_t& config) { config.algorithm = "ring"; },
                [](tuttiConfig_t& config) { config.channels = 3; },
                {"TUTTI_ALGO (config.algorithm)", "TUTTI_CHANNELS (config.channels, config.channelRules)"});
}

// A rank may wait longer than others, and have a name and a folder of its own.
TEST(Agreement, IsNotAskedForWhereNothingDependsOnIt) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  runRanks(2, [&](int rank) {
    tuttiConfig_t config = testConfig();
    config.operationTimeoutMs += rank;
    config.connectTimeoutMs = 10'000 + rank;
    config.joinTimeoutMs += rank;
    config.name = rank == 0 ? "one" : "other";
    tuttiComm_t comm = nullptr;
    CHECK_TUTTI(tuttiCommInitRankConfig(&comm, 2, id, rank, &config));
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
    CHECK_TUTTI(tuttiCommDestroy(comm));
  });
}

TEST(Agreement, OfChildrenIsNeededToo) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    tuttiConfig_t config = testConfig();
    config.algorithm = rank == 0 ? "ring" : "halving";
    tuttiComm_t child = nullptr;
    EXPECT_EQ(tuttiCommSplit(comm, 0, rank, &child, &config), tuttiInvalidUsage);
    const std::string text = tuttiGetLastError(comm);
    EXPECT_NE(text.find("disagree on settings"), std::string::npos) << text;
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
  });
}

}  // namespace
}  // namespace tutti::test

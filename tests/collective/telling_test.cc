// What is told without doing anything: who the launcher says this process is, and how a call would run.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "support/api_ranks.h"
#include "support/variables.h"

namespace {

using namespace tutti::test;

std::string errorText() { return tuttiGetLastError(nullptr); }

TEST(Launch, IsWhatTheEnvironmentSays) {
  const Settings set({{"TUTTI_RANK", "2"},
                      {"TUTTI_SIZE", "5"},
                      {"TUTTI_LOCAL_RANK", "2"},
                      {"TUTTI_LOCAL_SIZE", "5"},
                      {"TUTTI_JOB", "a job"}});
  tuttiLaunch_t launch{};
  launch.size = sizeof launch;
  CHECK_TUTTI(tuttiGetLaunch(&launch));
  EXPECT_EQ(launch.size, sizeof launch);
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.ranks, 5);
  EXPECT_EQ(launch.localRank, 2);
  EXPECT_EQ(launch.localRanks, 5);
  EXPECT_EQ(launch.oneHost, 1);
  EXPECT_NE(std::string(launch.job).find("a job"), std::string::npos) << launch.job;
}

TEST(Launch, FillsWhatACallersStructHas) {
  const Settings set({{"TUTTI_RANK", "1"}, {"TUTTI_SIZE", "2"}, {"TUTTI_LOCAL_RANK", "1"}, {"TUTTI_LOCAL_SIZE", "2"}});
  struct {
    tuttiLaunch_t known;
    char newer[24];
  } given;
  std::memset(&given, 0xee, sizeof given);
  given.known.size = sizeof given;
  CHECK_TUTTI(tuttiGetLaunch(&given.known));
  EXPECT_EQ(given.known.size, sizeof given.known);
  for (const char byte : given.newer) EXPECT_EQ(byte, 0);
  given.known = {};
  given.known.size = offsetof(tuttiLaunch_t, localRank);
  given.known.localRank = 77;
  CHECK_TUTTI(tuttiGetLaunch(&given.known));
  EXPECT_EQ(given.known.rank, 1);
  EXPECT_EQ(given.known.localRank, 77) << "an older program's struct ends before it";
}

TEST(Launch, RefusesWhatCannotBeRead) {
  tuttiLaunch_t launch{};
  EXPECT_EQ(tuttiGetLaunch(&launch), tuttiInvalidArgument);
  EXPECT_NE(errorText().find("launch->size is 0; set it to sizeof(tuttiLaunch_t)"), std::string::npos) << errorText();
  EXPECT_EQ(tuttiGetLaunch(nullptr), tuttiInvalidArgument);
  const Settings half(std::vector<Setting>{{"TUTTI_RANK", "1"}});
  launch.size = sizeof launch;
  EXPECT_EQ(tuttiGetLaunch(&launch), tuttiInvalidUsage) << "half a set";
}

TEST(Explain, SaysWhatThenRuns) {
  withCommunicators(4, testConfig(), [](tuttiComm_t comm, int) {
    for (const size_t count : {size_t{1}, size_t{1} << 20}) {
      std::vector<float> data(count);
      const std::string told = explained(comm, "all-reduce", count);
      CHECK_TUTTI(tuttiAllReduce(data.data(), data.data(), count, tuttiFloat32, tuttiMax, comm, nullptr));
      tuttiCommStats_t stats{};
      stats.size = sizeof stats;
      CHECK_TUTTI(tuttiCommGetStats(comm, &stats));
      EXPECT_EQ(told.find("chosen: " + std::string(stats.lastAlgorithm) + " over "), 0u) << told;
      EXPECT_NE(told.find("\nnext: "), std::string::npos) << told;
    }
  });
}

TEST(Explain, KnowsEveryCollectiveAndNoOther) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int) {
    for (const char* name : {"all-reduce", "broadcast", "reduce", "all-gather", "reduce-scatter", "all-to-all",
                             "gather", "scatter", "barrier"})
      EXPECT_EQ(explained(comm, name, 10).find("chosen: "), 0u) << name;
    char text[8] = {};
    EXPECT_EQ(tuttiCommExplain(comm, "all-to-none", 1, tuttiInt8, text, sizeof text), tuttiInvalidArgument);
    EXPECT_NE(errorText().find("collective is all-to-none: choose one of all-reduce"), std::string::npos)
        << errorText();
    EXPECT_EQ(tuttiCommExplain(comm, "send/receive", 1, tuttiInt8, text, sizeof text), tuttiInvalidArgument);
    EXPECT_EQ(tuttiCommExplain(comm, nullptr, 1, tuttiInt8, text, sizeof text), tuttiInvalidArgument);
    EXPECT_EQ(tuttiCommExplain(comm, "barrier", 1, tuttiInt8, text, 0), tuttiInvalidArgument);
    EXPECT_EQ(tuttiCommExplain(comm, "barrier", 1, tuttiInt8, nullptr, 8), tuttiInvalidArgument);
    EXPECT_EQ(tuttiCommExplain(comm, "broadcast", SIZE_MAX, tuttiInt64, text, sizeof text), tuttiInvalidArgument);
    CHECK_TUTTI(tuttiCommExplain(comm, "broadcast", 1, tuttiInt8, text, sizeof text));
    EXPECT_STREQ(text, "chosen:") << "cut where the room ends";
  });
}

}  // namespace

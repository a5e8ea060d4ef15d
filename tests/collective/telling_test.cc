// What is told without doing anything: who the launcher says this process is, and how a call would run.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
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

using Json = nlohmann::json;

// What the lines say is what the JSON says.
TEST(Explain, TellsTheSameAsJson) {
  withCommunicators(3, testConfig(), [](tuttiComm_t comm, int rank) {
    for (const char* name : {"all-reduce", "broadcast", "all-gather", "barrier"}) {
      const Json told = Json::parse(explainedJson(comm, name, 1000));
      const std::string lines = explained(comm, name, 1000);
      EXPECT_EQ(told.at("count"), 1000);
      EXPECT_EQ(told.at("ranks"), 3);
      EXPECT_EQ(lines.find("chosen: " + told.at("choice").at("algorithm").get<std::string>() + " over "), 0u) << lines;
      size_t next = 0, links = 0;
      for (size_t at = 0; (at = lines.find("\nnext: ", at)) != std::string::npos; ++at) ++next;
      EXPECT_EQ(told.at("others").size(), next) << lines;
      double before = told.at("choice").at("predicted_us");
      for (const Json& other : told.at("others")) {
        EXPECT_GE(other.at("predicted_us"), before);
        before = other.at("predicted_us");
      }
      for (const Json& link : told.at("links")) {
        links += link.at("ranks").size();
        EXPECT_EQ(link.at("same_host"), true);
        EXPECT_EQ(link.at("priced_by"), "as shipped");
        for (const int peer : link.at("ranks")) EXPECT_NE(peer, rank);
      }
      EXPECT_EQ(links, 2u);
      EXPECT_EQ(told.at("prices"), "shipped with the library");
    }
    const std::string text = explainedJson(comm, "all-reduce", 1000);
    EXPECT_EQ(Json::parse(text).at("operation"), "all_reduce");
    EXPECT_EQ(Json::parse(text).at("bytes"), 4000);
    if (rank == 0) ::testing::Test::RecordProperty("explanation", text);  // for json_doc_test.py
  });
}

TEST(Explain, SaysWhyNotByAFasterLink) {
  tuttiConfig_t config = testConfig();
  config.transports = "tcp";
  config.algorithm = "ring";
  withCommunicators(2, config, [](tuttiComm_t comm, int) {
    const Json told = Json::parse(explainedJson(comm, "all-reduce", 10));
    const Json& link = told.at("links").at(0);
    EXPECT_EQ(link.at("transport"), "tcp");
    const std::string reasons = link.at("not_faster").dump();
    EXPECT_NE(reasons.find("p2p: left out by TUTTI_TRANSPORT"), std::string::npos) << reasons;
    EXPECT_NE(reasons.find("shm: left out by TUTTI_TRANSPORT"), std::string::npos) << reasons;
    EXPECT_NE(told.at("left_out").dump().find("tree: not allowed by TUTTI_ALGO"), std::string::npos) << told.dump(1);
    const std::string lines = explained(comm, "all-reduce", 10);
    EXPECT_NE(lines.find("\nlink: tcp to 1 rank of this host, "), std::string::npos) << lines;
    EXPECT_NE(lines.find("; not shm: left out by "), std::string::npos) << lines;
  });
}

TEST(Explain, JsonIsWholeOrNotThere) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int) {
    size_t length = 0;
    const auto ask = [&](const char* collective, char* json, size_t room, size_t* needs) {
      return tuttiCommExplainJson(comm, collective, 10, tuttiFloat32, json, room, needs);
    };
    ASSERT_EQ(ask("all-reduce", nullptr, 0, &length), tuttiSuccess);
    std::string text(length + 1, 'x');
    size_t again = 0;
    EXPECT_EQ(ask("all-reduce", text.data(), length, &again), tuttiInvalidArgument);
    EXPECT_EQ(again, length);
    EXPECT_EQ(text, std::string(length + 1, 'x')) << "nothing is written";
    EXPECT_NE(errorText().find("the text takes " + std::to_string(length + 1)), std::string::npos) << errorText();
    EXPECT_EQ(ask("all-reduce", text.data(), length + 1, nullptr), tuttiSuccess);
    EXPECT_EQ(text.back(), '\0');
    EXPECT_EQ(ask("all-reduce", nullptr, 0, nullptr), tuttiInvalidArgument);
    EXPECT_EQ(ask("all-to-none", nullptr, 0, &length), tuttiInvalidArgument);
    EXPECT_EQ(ask(nullptr, nullptr, 0, &length), tuttiInvalidArgument);
    EXPECT_EQ(tuttiCommExplainJson(comm, "broadcast", SIZE_MAX, tuttiInt64, nullptr, 0, &length), tuttiInvalidArgument);
  });
}

TEST(Explain, OneRankAloneHasNothingToWeigh) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    const Json told = Json::parse(explainedJson(comm, "all-reduce", 10));
    EXPECT_TRUE(told.at("links").empty());
    EXPECT_TRUE(told.at("choice").contains("algorithm"));
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

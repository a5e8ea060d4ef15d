// Calls with a configuration of their own: what it changes, and what of it is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/api_ranks.h"
#include "support/every_call.h"
#include "support/variables.h"

namespace {

using namespace tutti::test;

tuttiResult_t allReduce(tuttiComm_t comm, const tuttiCallConfig_t* config) {
  int value = 1;
  return tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr, config);
}

class CallConfig : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, CallConfig, testing::Values("p2p", "shm", "tcp"),
                         [](const auto& one) { return one.param; });

tuttiConfig_t over(const char* transport) {
  tuttiConfig_t config = testConfig();
  config.transports = transport;
  return config;
}

TEST_P(CallConfig, EveryOperationTakesOne) {
  withCommunicators(3, over(GetParam()), [](tuttiComm_t comm, int rank) {
    EveryCallBuffers at(rank, 3);
    for (const auto& call : everyCollective(at, comm, nullptr)) {
      tuttiCallConfig_t config = callConfig();
      config.channels = 2;
      config.tag = 77;
      for (const tuttiCallConfig_t* given : {static_cast<const tuttiCallConfig_t*>(nullptr), &std::as_const(config)}) {
        CHECK_TUTTI(call.make(given));
        EXPECT_TRUE(call.right()) << call.name;
      }
    }
  });
}

TEST_P(CallConfig, AlgorithmsAndChannelsChangeFromCallToCall) {
  withCommunicators(4, over(GetParam()), [](tuttiComm_t comm, int rank) {
    for (int i = 0; i < 3; ++i)
      for (const char* algorithm : {"ring", "tree", "Oneshot", "twoshot"})
        for (const int channels : {1, 3}) {
          std::vector<double> data(5000, rank + 1);
          tuttiCallConfig_t config = callConfig();
          config.algorithm = algorithm;
          config.channels = channels;
          CHECK_TUTTI(tuttiAllReduceConfig(data.data(), data.data(), data.size(), tuttiFloat64, tuttiSum, comm, nullptr,
                                           &config));
          EXPECT_EQ(data, std::vector<double>(5000, 10));
          EXPECT_EQ(lastAlgorithm(comm), *algorithm == 'O' ? "oneshot" : algorithm);
        }
  });
}

TEST(CallConfigOf, ACallChangesNothingForTheNext) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int) {
    CHECK_TUTTI(allReduce(comm, nullptr));
    const std::string usual = lastAlgorithm(comm), other = usual == "ring" ? "tree" : "ring";
    tuttiCallConfig_t config = callConfig();
    config.algorithm = other.c_str();
    for (int i = 0; i < 3; ++i) {
      CHECK_TUTTI(allReduce(comm, &config));
      EXPECT_EQ(lastAlgorithm(comm), other);
      CHECK_TUTTI(allReduce(comm, nullptr));
      EXPECT_EQ(lastAlgorithm(comm), usual);
    }
  });
}

TEST(CallConfigOf, TheCallWinsOverTheCommunicatorsAndTheEnvironmentOverBoth) {
  tuttiConfig_t config = testConfig();
  config.algorithm = "ring";
  tuttiCallConfig_t call = callConfig();
  call.algorithm = "tree";
  withCommunicators(2, config, [&](tuttiComm_t comm, int) {
    CHECK_TUTTI(allReduce(comm, &call));
    EXPECT_EQ(lastAlgorithm(comm), "tree");
  });
  const Settings set({Setting{"TUTTI_ALGO", "oneshot"}});
  withCommunicators(2, config, [&](tuttiComm_t comm, int) {
    CHECK_TUTTI(allReduce(comm, &call));
    EXPECT_EQ(lastAlgorithm(comm), "oneshot");
  });
}

void expectRefused(tuttiComm_t comm, const tuttiCallConfig_t& config, const std::string& text) {
  EXPECT_EQ(allReduce(comm, &config), tuttiInvalidArgument);
  EXPECT_NE(std::string(tuttiGetLastError(comm)).find(text), std::string::npos)
      << tuttiGetLastError(comm) << "\nhas no\n"
      << text;
}

size_t countIn(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(CallConfigOf, ACallThatAsksForTheSameBitsInVainIsWarnedOfOnce) {
  const Settings set({{"TUTTI_REPRODUCIBLE", "0"}, {"TUTTI_CHANNELS", "1"}});
  testing::internal::CaptureStderr();
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int) {
    tuttiCallConfig_t config = callConfig();
    config.channels = 2;
    CHECK_TUTTI(allReduce(comm, &config));
    config.reproducible = 1;
    for (int i = 0; i < 3; ++i) CHECK_TUTTI(allReduce(comm, &config));
  });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(countIn(log,
                    "warning: overridden, in this call and all of this communicator: config.reproducible=1 by "
                    "TUTTI_REPRODUCIBLE=0: bits may differ with what is chosen\n"),
            1u)
      << log;
  EXPECT_EQ(countIn(log, "overridden"), 1u) << log;
}

TEST(CallConfigOf, WhatIsWrongInItIsNamed) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    tuttiCallConfig_t config = callConfig();
    config.algorithm = "";
    config.channels = 0;
    int value = 1;
    EXPECT_EQ(tuttiAllReduceConfig(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr, &config), tuttiSuccess);
    config.algorithm = "nonsense";
    expectRefused(comm, config, "tuttiAllReduceConfig: config.algorithm: 'nonsense' is no algorithm; choose one of: ");
    config.algorithm = "bruck";
    expectRefused(comm, config, "config.algorithm: all-reduce has no algorithm bruck; choose one of: ring, ");
    config = callConfig();
    for (const int channels : {-1, 65}) {
      config.channels = channels;
      expectRefused(comm, config, "config.channels is " + std::to_string(channels) + ": 0 to 64");
    }
    config = callConfig();
    config.flags = 4;
    expectRefused(comm, config, "config.flags is 0x4");
    config.flags = TUTTI_CALL_PERSISTENT;
    expectRefused(comm, config, "config.request is NULL");
    config = callConfig();
    config.reproducible = 2;
    expectRefused(comm, config, "config.reproducible is 2: 0 or 1");
    config = callConfig();
    config.version = 99;
    expectRefused(comm, config, "config.version is 99");
  });
}

TEST(CallConfigOf, MessagesHaveNoAlgorithmsAndNoChannels) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    int value = 0;
    tuttiCallConfig_t config = callConfig();
    config.algorithm = "ring";
    EXPECT_EQ(tuttiSendConfig(&value, 1, tuttiInt32, 0, comm, nullptr, &config), tuttiInvalidArgument);
    EXPECT_NE(std::string(tuttiGetLastError(comm)).find("no algorithms"), std::string::npos) << tuttiGetLastError(comm);
    config = callConfig();
    config.channels = 1;
    EXPECT_EQ(tuttiRecvConfig(&value, 1, tuttiInt32, 0, comm, nullptr, &config), tuttiInvalidArgument);
    EXPECT_NE(std::string(tuttiGetLastError(comm)).find("no channels"), std::string::npos) << tuttiGetLastError(comm);
  });
}

TEST(CallConfigOf, OlderAndNewerStructsAreTaken) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    tuttiCallConfig_t config = callConfig();
    config.flags = ~0u;  // behind what an older program's struct has
    config.size = offsetof(tuttiCallConfig_t, algorithm);
    EXPECT_EQ(allReduce(comm, &config), tuttiSuccess) << tuttiGetLastError(comm);
    config = callConfig();
    for (const size_t size : {size_t{0}, sizeof(size_t), size_t{1} << 20}) {
      config.size = size;
      expectRefused(comm, config, "config.size is ");
    }
    struct {
      tuttiCallConfig_t known = TUTTI_CALL_CONFIG_INITIALIZER;
      uint64_t later[2] = {0, 0};
    } newer;
    newer.known.size = sizeof newer;
    EXPECT_EQ(allReduce(comm, &newer.known), tuttiSuccess) << tuttiGetLastError(comm);
    newer.later[1] = 1;
    expectRefused(comm, newer.known, "is not 0: it is of a field that this library, tutti ");
  });
}

// Every kind of difference, of a collective without a root, with one, with counts of its own, and of a message.
struct Different {
  const char* name;
  std::function<void(tuttiCallConfig_t&, int)> set;
  const char* text;
};

tuttiResult_t makeOne(size_t kind, EveryCallBuffers& at, tuttiComm_t comm, const tuttiCallConfig_t& config) {
  if (kind < 12) return everyCollective(at, comm, nullptr)[kind].make(&config);
  if (at.rank == 0) return tuttiSendConfig(at.in.data(), 3, tuttiInt32, 1, comm, nullptr, &config);
  return tuttiRecvConfig(at.out.data(), 3, tuttiInt32, 0, comm, nullptr, &config);
}

void expectDifference(const Different& how, size_t kind) {
  tuttiConfig_t config = testConfig();
  withCommunicators(2, config, [&](tuttiComm_t comm, int rank) {
    EveryCallBuffers at(rank, 2);
    CHECK_TUTTI(tuttiBarrier(comm, nullptr));
    tuttiCallConfig_t call = callConfig();
    how.set(call, rank);
    tuttiResult_t result = makeOne(kind, at, comm, call);
    // Whoever has what it needs is through, and hears of it in its next call.
    if (result == tuttiSuccess) result = tuttiBarrier(comm, nullptr);
    EXPECT_EQ(result, tuttiInvalidUsage) << how.name << ", " << kind;
    EXPECT_NE(std::string(tuttiGetLastError(comm)).find(how.text), std::string::npos)
        << how.name << ", " << kind << ": " << tuttiGetLastError(comm);
  });
}

TEST(CallConfigOf, TagsThatDifferAreNamed) {
  const Different cases[] = {
      {"one", [](tuttiCallConfig_t& call, int rank) { call.tag = rank == 0 ? 0 : 11; }, "differ: "},
      {"other", [](tuttiCallConfig_t& call, int rank) { call.tag = rank == 0 ? 5 : 11; }, "differ: "},
  };
  for (const Different& how : cases)
    for (const size_t kind : {0, 1, 2, 3, 10, 11, 12}) expectDifference(how, kind);
}

TEST(CallConfigOf, AlgorithmsAndChannelsThatDifferAreNamed) {
  const Different algorithm{"algorithm",
                            [](tuttiCallConfig_t& call, int rank) { call.algorithm = rank == 0 ? "ring" : "tree"; },
                            "in different ways: "};
  const Different channels{"channels", [](tuttiCallConfig_t& call, int rank) { call.channels = 1 + rank; },
                           "in different ways: "};
  for (const size_t kind : {0, 1, 11}) expectDifference(algorithm, kind);
  for (const size_t kind : {0, 3, 11}) expectDifference(channels, kind);
}

}  // namespace

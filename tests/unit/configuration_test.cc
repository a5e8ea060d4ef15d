// What the environment and a program's tuttiConfig_t make together.
#include "api/configuration.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>

#include "base/error.h"
#include "support/variables.h"

namespace tutti::api {
namespace {

using std::chrono::milliseconds;
using test::Setting, test::Settings;

// A struct that says something in every field that a variable has.
tuttiConfig_t everything() {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.joinTimeoutMs = 1;
  config.connectTimeoutMs = 2;
  config.operationTimeoutMs = 3;
  config.channels = 4;
  config.transports = "tcp";
  config.algorithm = "ring";
  config.heartbeatMs = -1;
  config.encrypt = 1;
  config.device = "cuda:5";
  config.reproducible = 1;
  return config;
}

comm::Config resolved(const tuttiConfig_t& given) { return resolve(&given, comm::Config::fromEnvironment(), "call"); }

TEST(Configuration, CountsWhereTheEnvironmentIsSilent) {
  const Settings settings({Setting{"TUTTI_CHANNELS", ""}});  // empty: not set
  const comm::Config config = resolved(everything());
  EXPECT_EQ(config.joinTimeout, milliseconds(1));
  EXPECT_EQ(config.connectTimeout, milliseconds(2));
  EXPECT_EQ(config.operationTimeout, milliseconds(3));
  EXPECT_EQ(config.channels, 4);
  EXPECT_EQ(config.transports, "tcp");
  EXPECT_EQ(config.algorithms, schedule::Algorithm::kRing);
  EXPECT_EQ(config.heartbeat, milliseconds(0));
  EXPECT_TRUE(config.encrypt);
  EXPECT_TRUE(config.reproducible);
  EXPECT_EQ(config.device, 5);
  EXPECT_TRUE(config.overridden.empty());
}

TEST(Configuration, TheEnvironmentWinsInEveryField) {
  const Settings settings({{"TUTTI_JOIN_TIMEOUT_MS", "11"},
                           {"TUTTI_CONNECT_TIMEOUT_MS", "12"},
                           {"TUTTI_OPERATION_TIMEOUT_MS", "13"},
                           {"TUTTI_CHANNELS", "0"},
                           {"TUTTI_TRANSPORT", "^tcp"},
                           {"TUTTI_ALGO", "tree"},
                           {"TUTTI_HEARTBEAT_MS", "14"},
                           {"TUTTI_ENCRYPT", "0"},
                           {"TUTTI_REPRODUCIBLE", "0"},
                           {"TUTTI_DEVICE", "cpu"}});
  const comm::Config config = resolved(everything());
  EXPECT_EQ(config.joinTimeout, milliseconds(11));
  EXPECT_EQ(config.connectTimeout, milliseconds(12));
  EXPECT_EQ(config.operationTimeout, milliseconds(13));
  EXPECT_EQ(config.channels, 0);
  EXPECT_EQ(config.transports, "^tcp");
  EXPECT_EQ(config.algorithms, schedule::Algorithm::kTree);
  EXPECT_EQ(config.heartbeat, milliseconds(14));
  EXPECT_FALSE(config.encrypt);
  EXPECT_FALSE(config.reproducible);
  EXPECT_EQ(config.device, -1);
  std::string all;
  for (const auto& [name, text] : config.overridden) all += text + "\n";
  EXPECT_EQ(all,
            "config.algorithm=ring by TUTTI_ALGO=tree\n"
            "config.channels=4 by TUTTI_CHANNELS=0\n"
            "config.connectTimeoutMs=2 by TUTTI_CONNECT_TIMEOUT_MS=12\n"
            "config.device=cuda:5 by TUTTI_DEVICE=cpu\n"
            "config.encrypt=1 by TUTTI_ENCRYPT=0\n"
            "config.heartbeatMs=-1 by TUTTI_HEARTBEAT_MS=14\n"
            "config.joinTimeoutMs=1 by TUTTI_JOIN_TIMEOUT_MS=11\n"
            "config.operationTimeoutMs=3 by TUTTI_OPERATION_TIMEOUT_MS=13\n"
            "config.reproducible=1 by TUTTI_REPRODUCIBLE=0\n"
            "config.transports=tcp by TUTTI_TRANSPORT=^tcp\n");
}

TEST(Configuration, WhatSaysTheSameOverridesNothing) {
  const Settings settings({{"TUTTI_ALGO", "ring"}, {"TUTTI_ENCRYPT", "1"}, {"TUTTI_HEARTBEAT_MS", "0"}});
  EXPECT_TRUE(resolved(everything()).overridden.empty());
}

TEST(Configuration, AnEmptyTextIsTheDefault) {
  tuttiConfig_t given = TUTTI_CONFIG_INITIALIZER;
  given.transports = given.algorithm = given.device = "";
  for (const comm::Config& config : {resolved(given), resolve(&given, resolved(everything()), "call")}) {
    EXPECT_EQ(config.transports, "");
    EXPECT_FALSE(config.algorithms);
    EXPECT_EQ(config.device, -1);
  }
}

TEST(Configuration, TheEnvironmentWinsInChildrenToo) {
  comm::Config parent;
  {
    const Settings settings({Setting{"TUTTI_ALGO", "tree"}});
    parent = resolved(everything());
  }
  EXPECT_EQ(resolve(nullptr, parent, "call").algorithms, schedule::Algorithm::kTree);
  tuttiConfig_t given = TUTTI_CONFIG_INITIALIZER;
  given.algorithm = "direct";
  given.channels = 2;
  const comm::Config child = resolve(&given, parent, "call");
  EXPECT_EQ(child.algorithms, schedule::Algorithm::kTree);
  EXPECT_EQ(child.overridden.at("algorithm"), "config.algorithm=direct by TUTTI_ALGO=tree");
  EXPECT_EQ(child.channels, 2);
  EXPECT_EQ(child.joinTimeout, milliseconds(1)) << "what is not given is inherited";
  given.algorithm = "tree";
  EXPECT_TRUE(resolve(&given, parent, "call").overridden.empty()) << "the parent's struct is not the child's";
}

// A value that both can have is said to be where it is.
TEST(Configuration, SaysWhereAWrongValueIs) {
  for (const auto& [name, value, text] :
       {std::array{"TUTTI_ALGO", "x", "TUTTI_ALGO: 'x' is no algorithm"},
        std::array{"TUTTI_TRANSPORT", "x", "TUTTI_TRANSPORT: the list of transports \"x\" names \"x\""},
        std::array{"TUTTI_DEVICE", "x", "TUTTI_DEVICE: 'x' is no device"}}) {
    const Settings settings({Setting{name, value}});
    try {
      comm::Config::fromEnvironment();
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(text)) << error.what();
      EXPECT_EQ(std::string(error.what()).find("configuration"), std::string::npos) << error.what();
    }
  }
}

// Nobody's environment makes a wrong struct right.
TEST(Configuration, WrongFieldsAreNamedWhateverTheEnvironmentSays) {
  const Settings settings({{"TUTTI_ALGO", "tree"}, {"TUTTI_ENCRYPT", "1"}, {"TUTTI_JOIN_TIMEOUT_MS", "9"}});
  const auto refusalOf = [](const std::function<void(tuttiConfig_t&)>& spoil) {
    tuttiConfig_t config = everything();
    spoil(config);
    try {
      resolved(config);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string();
  };
  const auto expect = [&](const std::string& text, const std::function<void(tuttiConfig_t&)>& spoil) {
    EXPECT_NE(refusalOf(spoil).find("call: config." + text), std::string::npos) << refusalOf(spoil);
  };
  expect("algorithm: 'rings'", [](auto& config) { config.algorithm = "rings"; });
  expect("joinTimeoutMs is -1: milliseconds from 1 on, or 0", [](auto& config) { config.joinTimeoutMs = -1; });
  expect("heartbeatMs is -2: milliseconds from 1 on, 0 for the default, or -1 for ever",
         [](auto& config) { config.heartbeatMs = -2; });
  expect("encrypt is -1: 0 or 1", [](auto& config) { config.encrypt = -1; });
  expect("encrypt is 2: 0 or 1", [](auto& config) { config.encrypt = 2; });
  expect("reproducible is 2: 0 or 1", [](auto& config) { config.reproducible = 2; });
  expect("nonBlocking is 2: 0 or 1", [](auto& config) { config.nonBlocking = 2; });
  expect("version is 0, which tutti", [](auto& config) { config.version = 0; });
  expect("version is 99, which tutti", [](auto& config) { config.version = 99; });
  expect("version is 99999, which tutti", [](auto& config) { config.version = 99999; });
  EXPECT_EQ(refusalOf([](auto& config) { config.version = TUTTI_VERSION_CODE + 100; }), "")
      << "a program may be built with the next minor version";
}

}  // namespace
}  // namespace tutti::api

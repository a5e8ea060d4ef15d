#include "settings/foreign_settings.h"

#include <gtest/gtest.h>

#include "process/log.h"

namespace tutti::settings {
namespace {

std::string told(Environment::Values values) { return foreignNames(Environment(std::move(values))); }

TEST(ForeignSettings, AreAnsweredWithOurs) {
  EXPECT_EQ(told({{"NCCL_DEBUG", "INFO"}}),
            "NCCL's variables are not read here; set TUTTI_DEBUG for NCCL_DEBUG (docs/settings.md)");
  EXPECT_EQ(told({{"NCCL_ALGO", "Tree"}, {"NCCL_SOCKET_IFNAME", "eth0"}, {"NCCL_SHM_DISABLE", "1"}}),
            "NCCL's variables are not read here; set TUTTI_ALGO for NCCL_ALGO, TUTTI_SOCKET_IFNAME for "
            "NCCL_SOCKET_IFNAME, TUTTI_TRANSPORT=^shm for NCCL_SHM_DISABLE (docs/settings.md)");
}

TEST(ForeignSettings, WithoutACounterpartAreNamed) {
  EXPECT_EQ(
      told({{"NCCL_PROTO", "LL"}, {"NCCL_IB_HCA", "mlx5"}, {"NCCL_IB_AR_THRESHOLD", "1"}, {"NCCL_CROSS_NIC", "1"}}),
      "NCCL's variables are not read here; set TUTTI_PROTOCOL for NCCL_PROTO, TUTTI_IB_HCA for NCCL_IB_HCA; "
      "nothing here does what NCCL_IB_AR_THRESHOLD, NCCL_CROSS_NIC does (docs/settings.md)");
}

TEST(ForeignSettings, WhatIsSoAnywayNeedsNoAdvice) {
  EXPECT_EQ(told({{"NCCL_P2P_DISABLE", "0"}, {"NCCL_SHM_DISABLE", "0"}, {"NCCL_COMM_BLOCKING", "1"}}), "");
  EXPECT_EQ(told({{"NCCL_NVLS_ENABLE", "0"}, {"NCCL_P2P_DISABLE", "1"}}),
            "NCCL's variables are not read here; set TUTTI_TRANSPORT=^p2p for NCCL_P2P_DISABLE (docs/settings.md)");
}

TEST(ForeignSettings, WhoseCounterpartIsSetNeedNoAdvice) {
  EXPECT_EQ(told({{"NCCL_ALGO", "Ring"}, {"TUTTI_ALGO", "ring"}}), "");
  EXPECT_EQ(told({{"NCCL_SHM_DISABLE", "1"}, {"TUTTI_TRANSPORT", "tcp"}}), "");
}

// A counterpart does the same, with a value that it takes.
TEST(ForeignSettings, HaveNoCounterpartThatDoesSomethingElse) {
  EXPECT_EQ(told({{"NCCL_BUFFSIZE", "4194304"}, {"NCCL_COMM_BLOCKING", "0"}}),
            "NCCL's variables are not read here; nothing here does what NCCL_BUFFSIZE, NCCL_COMM_BLOCKING does "
            "(docs/settings.md)");
  EXPECT_EQ(told({{"NCCL_SOCKET_FAMILY", "AF_INET6"}}),
            "NCCL's variables are not read here; set TUTTI_SOCKET_FAMILY=4 (AF_INET) or 6 (AF_INET6) for "
            "NCCL_SOCKET_FAMILY (docs/settings.md)");
}

TEST(ForeignSettings, OthersAreNobodysBusiness) {
  EXPECT_EQ(told({{"NCCL_VERSION", "2.21"}, {"NCCL_HOME", "/opt"}, {"NCCL_DEBUG", ""}, {"NCCL_TESTS_MIN_BW", "1"}}),
            "");
}

TEST(LogLevels, AreKnownInAnyCaseOfLetters) {
  using log::Level, log::levelByName;
  EXPECT_EQ(levelByName("TRACE"), Level::kDebug);
  EXPECT_EQ(levelByName("Debug"), Level::kDebug);
  EXPECT_EQ(levelByName("INFO"), Level::kInfo);
  EXPECT_EQ(levelByName("VERSION"), Level::kVersion);
  EXPECT_EQ(levelByName("version"), Level::kVersion);
  EXPECT_EQ(levelByName("WARN"), Level::kWarn);
  EXPECT_EQ(levelByName("off"), Level::kOff);
  EXPECT_EQ(levelByName("loud"), std::nullopt);
}

}  // namespace
}  // namespace tutti::settings

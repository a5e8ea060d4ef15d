// Which settings ranks compare while they join (tests/collective/agreement_test.cc: what becomes of a difference).
#include "team/agreement.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "team/config.h"

namespace tutti::comm {
namespace {

Config ofGpu() {
  Config config;
  config.device = 0;
  return config;
}

// The names of those that two ranks would be refused for.
std::vector<std::string> differences(const Config& one, const Config& other) {
  std::vector<std::string> names;
  for (const auto& mine : agreementOf(one))
    for (const auto& theirs : agreementOf(other))
      if (mine.name == theirs.name && mine.value != theirs.value) names.push_back(mine.name);
  return names;
}

TEST(AgreedSettings, HaveAllThatRanksOnGpusMustShare) {
  const std::vector<std::pair<std::string, std::function<void(Config&)>>> changes = {
      {"TUTTI_ALGO (config.algorithm)", [](Config& config) { config.algorithms = schedule::Algorithm::kRing; }},
      {"TUTTI_CHANNELS (config.channels, config.channelRules)", [](Config& config) { config.channels = 3; }},
      {"TUTTI_TRANSPORT (config.transports), TUTTI_TRANSPORT_PLUGINS",
       [](Config& config) { config.transports = "tcp"; }},
      {"TUTTI_GROUP_SIZE", [](Config& config) { config.groupSize = 2; }},
      {"TUTTI_HEARTBEAT_MS (config.heartbeatMs)", [](Config& config) { config.heartbeat *= 2; }},
      {"TUTTI_PROFILE", [](Config& config) { config.prices.skew *= 2; }},
      {"TUTTI_REPRODUCIBLE (config.reproducible)", [](Config& config) { config.reproducible = true; }},
      {"TUTTI_PROTOCOL (config.protocol)", [](Config& config) { config.protocols = Protocol::kSimple; }},
      {"TUTTI_GPU_BUFFER_MIB", [](Config& config) { config.deviceSlotBytes *= 2; }},
      {"TUTTI_LL_FLAG_BITS", [](Config& config) { config.llFlagMask = 0xff; }},
  };
  EXPECT_TRUE(differences(ofGpu(), ofGpu()).empty());
  EXPECT_EQ(agreementOf(ofGpu()).size(), changes.size()) << "a setting without a line above";
  for (const auto& [name, change] : changes) {
    Config other = ofGpu();
    change(other);
    EXPECT_EQ(differences(ofGpu(), other), std::vector<std::string>{name});
  }
}

// Ranks in host memory have no GPU's settings, and may meet ranks that have.
TEST(AgreedSettings, OfGpusAreNotAskedOfRanksInHostMemory) {
  Config other;
  other.deviceSlotBytes *= 2;
  other.llFlagMask = 0xff;
  other.protocols = Protocol::kSimple;
  EXPECT_TRUE(differences(Config{}, other).empty());
  EXPECT_TRUE(differences(Config{}, ofGpu()).empty());
}

}  // namespace
}  // namespace tutti::comm

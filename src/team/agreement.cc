#include "team/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "plan/profile_file.h"

namespace tutti::comm {
namespace {

std::string orChosen(int number) { return number == 0 ? "not set" : std::to_string(number); }

// As the rules were meant. Of a text that is too long for a hello the end is told as a digest: two that differ there
// differ still.
std::string rulesOf(const std::string& text) {
  constexpr size_t kMost = 900;
  if (text.empty()) return "not set";
  if (text.size() <= kMost) return text;
  uint64_t digest = 0;
  for (const unsigned char c : text) digest = (digest ^ c) * 0x9e3779b97f4a7c15 + (digest >> 29);
  return fmt::format("{}... ({:016x})", text.substr(0, kMost), digest);
}

// As the list was meant, not as it was written.
std::string transportsOf(const Config& config) {
  const link::Registry registry = registryOfAll(config);
  return fmt::format("{}", fmt::join(registry.terms(), ","));
}

}  // namespace

control::Agreement agreementOf(const Config& config) {
  control::Agreement all = {
      {"TUTTI_ALGO (config.algorithm)", rulesOf(schedule::textOf(config.algorithms))},
      {"TUTTI_CHANNELS (config.channels, config.channelRules)", rulesOf(schedule::textOf(config.channels))},
      {"TUTTI_TRANSPORT (config.transports), TUTTI_TRANSPORT_PLUGINS", transportsOf(config)},
      {"TUTTI_GROUP_SIZE", orChosen(config.groupSize)},
      {"TUTTI_HEARTBEAT_MS (config.heartbeatMs)", std::to_string(config.heartbeat.count())},
      {"TUTTI_PROFILE", plan::digestOf(config.prices)},
      {"TUTTI_REPRODUCIBLE (config.reproducible)", config.reproducible ? "1" : "0"},
  };
  if (config.device < 0) return all;
  all.push_back({"TUTTI_PROTOCOL (config.protocol)", rulesOf(plan::textOf(config.protocols))});
  all.push_back({"TUTTI_GPU_BUFFER_MIB", std::to_string(config.deviceSlotBytes >> 20)});
  all.push_back({"TUTTI_LL_FLAG_BITS", std::to_string(std::bit_width(config.llFlagMask))});
  return all;
}

}  // namespace tutti::comm

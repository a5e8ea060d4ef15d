#include "comm/config.h"

#include "base/settings.h"
#include "plan/plan.h"

namespace tutti::comm {

Config Config::fromEnvironment() {
  constexpr int64_t kLongest = 1'000'000'000;
  const auto milliseconds = [](const char* name, std::chrono::milliseconds fallback) {
    return std::chrono::milliseconds(settings::number(name, fallback.count(), 1, kLongest));
  };
  Config config;
  config.joinTimeout = milliseconds("TUTTI_JOIN_TIMEOUT_MS", config.joinTimeout);
  config.connectTimeout = milliseconds("TUTTI_CONNECT_TIMEOUT_MS", config.connectTimeout);
  config.operationTimeout = milliseconds("TUTTI_OPERATION_TIMEOUT_MS", config.operationTimeout);
  config.channels = static_cast<int>(settings::number("TUTTI_CHANNELS", 0, 0, 64));
  config.transports = settings::text("TUTTI_TRANSPORT", "");
  if (const auto name = settings::find("TUTTI_ALGO")) config.algorithm = plan::algorithmByName(*name);
  config.groupSize = static_cast<int>(settings::number("TUTTI_GROUP_SIZE", 0, 0, 1 << 20));
  return config;
}

}  // namespace tutti::comm

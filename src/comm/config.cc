#include "comm/config.h"

#include "base/settings.h"
#include "plan/plan.h"

namespace tutti::comm {

Config Config::fromEnvironment() {
  settings::warnOfStrangeNames();
  Config config;
  config.joinTimeout = settings::milliseconds("TUTTI_JOIN_TIMEOUT_MS");
  config.connectTimeout = settings::milliseconds("TUTTI_CONNECT_TIMEOUT_MS");
  config.operationTimeout = settings::milliseconds("TUTTI_OPERATION_TIMEOUT_MS");
  config.channels = static_cast<int>(settings::number("TUTTI_CHANNELS"));
  config.transports = settings::text("TUTTI_TRANSPORT");
  if (const auto name = settings::find("TUTTI_ALGO")) config.algorithm = plan::algorithmByName(*name);
  config.groupSize = static_cast<int>(settings::number("TUTTI_GROUP_SIZE"));
  config.heartbeat = settings::milliseconds("TUTTI_HEARTBEAT_MS");
  config.encrypt = settings::isOn("TUTTI_ENCRYPT");
  config.dumpDirectory = settings::text("TUTTI_DUMP_DIR");
  return config;
}

}  // namespace tutti::comm

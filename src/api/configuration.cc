#include "api/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "api/check.h"
#include "base/error.h"
#include "comm/communicator.h"

namespace tutti::api {
namespace {

// Wraps what is wrong with a field of the caller's struct: of which call it was.
template <class Read>
auto field(const char* call, const char* name, Read&& read) {
  try {
    return std::forward<Read>(read)();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: config.{}: {}", call, name, error.what()));
  }
}

tuttiConfig_t completed(const tuttiConfig_t& given, const char* call) {
  if (given.size < offsetof(tuttiConfig_t, version) + sizeof given.version || given.size > sizeof(tuttiConfig_t))
    invalid(call, fmt::format("config.size is {}; start from TUTTI_CONFIG_INITIALIZER", given.size));
  tuttiConfig_t full = TUTTI_CONFIG_INITIALIZER;  // an older caller's shorter struct leaves the rest at its default
  std::memcpy(&full, &given, given.size);
  return full;
}

void resolveTimes(const tuttiConfig_t& full, comm::Config& config, const char* call) {
  const auto timeout = [call](const char* name, int value, std::chrono::milliseconds& into) {
    if (value < 0) invalid(call, fmt::format("config.{} is {}", name, value));
    if (value > 0) into = std::chrono::milliseconds(value);
  };
  timeout("joinTimeoutMs", full.joinTimeoutMs, config.joinTimeout);
  timeout("connectTimeoutMs", full.connectTimeoutMs, config.connectTimeout);
  timeout("operationTimeoutMs", full.operationTimeoutMs, config.operationTimeout);
  if (full.heartbeatMs < -1) invalid(call, fmt::format("config.heartbeatMs is {}", full.heartbeatMs));
  if (full.heartbeatMs != 0) config.heartbeat = std::chrono::milliseconds(std::max(0, full.heartbeatMs));
}

}  // namespace

comm::Config resolve(const tuttiConfig_t* given, comm::Config config, const char* call) {
  if (given == nullptr) return config;
  const tuttiConfig_t full = completed(*given, call);
  resolveTimes(full, config, call);
  if (full.channels < 0 || full.channels > 64)
    invalid(call, fmt::format("config.channels is {}: 0 to 64", full.channels));
  if (full.channels > 0) config.channels = full.channels;
  if (full.transports)
    config.transports = field(call, "transports", [&] { return comm::checkedTransports(full.transports); });
  if (full.algorithm)
    config.algorithm = field(call, "algorithm", [&] { return plan::algorithmByName(full.algorithm); });
  if (full.device) config.device = field(call, "device", [&] { return comm::deviceByName(full.device); });
  if (full.name) config.name = full.name;
  if (full.encrypt != 0) config.encrypt = true;
  return config;
}

}  // namespace tutti::api

#include "api/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "api/check.h"
#include "base/error.h"
#include "comm/communicator.h"
#include "process/log.h"
#include "settings/settings.h"

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

// Versions are numbers like 102 (0.1.2). A program may be newer than the library, but not by a major version.
void checkVersion(unsigned int version, const char* call) {
  constexpr unsigned int kMajor = 10'000, kOldest = 100;
  if (version >= kOldest && version / kMajor <= TUTTI_MAJOR) return;
  invalid(call,
          fmt::format("config.version is {}, which tutti {}.{}.{} does not know; start from TUTTI_CONFIG_INITIALIZER",
                      version, TUTTI_MAJOR, TUTTI_MINOR, TUTTI_PATCH));
}

void checkSwitch(int value, const char* name, const char* call) {
  if (value != 0 && value != 1) invalid(call, fmt::format("config.{} is {}: 0 or 1", name, value));
}

// What a newer program says beyond the fields of this library is at its default when it is zero: then nothing is lost.
void checkTail(const tuttiConfig_t& given, const char* call) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&given);
  const auto* const said = std::find_if(bytes + sizeof given, bytes + given.size, [](auto byte) { return byte != 0; });
  if (said == bytes + given.size) return;
  invalid(call,
          fmt::format("config.size is {}, and the byte at offset {} is not 0: it is of a field that this library, "
                      "tutti {}.{}.{}, is too old to know. Leave that field at its default, or use the library "
                      "that the program was made for",
                      given.size, said - bytes, TUTTI_MAJOR, TUTTI_MINOR, TUTTI_PATCH));
}

// Programs of 0.1 have padding there, in which anything may be.
void checkReserved(const tuttiConfig_t& full, const char* call) {
  constexpr unsigned int kNamed = 200;
  if (full.version < kNamed) return;
  const std::pair<const char*, int> all[] = {{"reserved0", full.reserved0}, {"reserved1", full.reserved1}};
  for (const auto& [name, value] : all)
    if (value != 0) invalid(call, fmt::format("config.{} is {}: 0; start from TUTTI_CONFIG_INITIALIZER", name, value));
}

tuttiConfig_t completed(const tuttiConfig_t& given, const char* call) {
  if (given.size < offsetof(tuttiConfig_t, version) + sizeof given.version || given.size > kLargestStruct)
    invalid(call, fmt::format("config.size is {}; start from TUTTI_CONFIG_INITIALIZER", given.size));
  tuttiConfig_t full = TUTTI_CONFIG_INITIALIZER;  // an older caller's shorter struct leaves the rest at its default
  std::memcpy(&full, &given, std::min(given.size, sizeof full));
  checkVersion(full.version, call);
  checkReserved(full, call);
  if (given.size > sizeof full) checkTail(given, call);
  checkSwitch(full.encrypt, "encrypt", call);
  checkSwitch(full.nonBlocking, "nonBlocking", call);
  checkSwitch(full.reproducible, "reproducible", call);
  return full;
}

// The caller's fields, each put into its place unless a variable is there already.
class Fields {
 public:
  Fields(comm::Config& config, const char* call) : config_(config), call_(call) {}

  // `shown` is the value as the caller wrote it.
  template <class Place, class Value, class Shown>
  void set(const char* name, settings::Name variable, Place& place, const Value& value, const Shown& shown) {
    const auto won = config_.variables.find(variable.text());
    if (won == config_.variables.end())
      place = value;
    else if (place == Place(value))
      config_.overridden.erase(name);  // what a parent's configuration lost there counts no more
    else
      config_.overridden[name] = fmt::format("config.{}={} by {}={}", name, shown, won->first, won->second);
  }
  void setTimeout(const char* name, settings::Name variable, std::chrono::milliseconds& place, int value) {
    if (value < 0)
      invalid(call_, fmt::format("config.{} is {}: milliseconds from 1 on, or 0 for the default", name, value));
    if (value > 0) set(name, variable, place, std::chrono::milliseconds(value), value);
  }

 private:
  comm::Config& config_;
  const char* call_;
};

void setTimes(const tuttiConfig_t& full, comm::Config& config, Fields& fields, const char* call) {
  fields.setTimeout("joinTimeoutMs", "TUTTI_JOIN_TIMEOUT_MS", config.joinTimeout, full.joinTimeoutMs);
  fields.setTimeout("connectTimeoutMs", "TUTTI_CONNECT_TIMEOUT_MS", config.connectTimeout, full.connectTimeoutMs);
  fields.setTimeout("operationTimeoutMs", "TUTTI_OPERATION_TIMEOUT_MS", config.operationTimeout,
                    full.operationTimeoutMs);
  if (full.heartbeatMs < -1)
    invalid(call, fmt::format("config.heartbeatMs is {}: milliseconds from 1 on, 0 for the default, or -1 for ever",
                              full.heartbeatMs));
  const std::chrono::milliseconds heartbeat(std::max(0, full.heartbeatMs));
  if (full.heartbeatMs != 0)
    fields.set("heartbeatMs", "TUTTI_HEARTBEAT_MS", config.heartbeat, heartbeat, full.heartbeatMs);
}

}  // namespace

comm::Config resolve(const tuttiConfig_t* given, comm::Config config, const char* call) {
  if (given == nullptr) return config;
  const tuttiConfig_t full = completed(*given, call);
  Fields fields(config, call);
  setTimes(full, config, fields, call);
  if (full.channels < 0 || full.channels > 64)
    invalid(call, fmt::format("config.channels is {}: 0 to 64", full.channels));
  if (full.channels > 0) fields.set("channels", "TUTTI_CHANNELS", config.channels, full.channels, full.channels);
  if (full.transports) {
    const auto list = field(call, "transports", [&] { return comm::checkedTransports(full.transports); });
    fields.set("transports", "TUTTI_TRANSPORT", config.transports, list, full.transports);
  }
  if (full.algorithm) {
    const auto algorithm = field(call, "algorithm", [&] { return schedule::algorithmByName(full.algorithm); });
    fields.set("algorithm", "TUTTI_ALGO", config.algorithm, algorithm, full.algorithm);
  }
  if (full.device) {
    const int device = field(call, "device", [&] { return comm::deviceByName(full.device); });
    fields.set("device", "TUTTI_DEVICE", config.device, device, full.device);
  }
  if (full.name) config.name = full.name;
  config.nonBlocking = full.nonBlocking != 0;
  if (full.encrypt != 0) fields.set("encrypt", "TUTTI_ENCRYPT", config.encrypt, true, full.encrypt);
  if (full.reproducible != 0)
    fields.set("reproducible", "TUTTI_REPRODUCIBLE", config.reproducible, true, full.reproducible);
  return config;
}

void tellOverridden(const comm::Config& config, int rank, const comm::Config* parent) {
  std::string all;
  for (const auto& [name, text] : config.overridden) {
    const auto told = parent ? parent->overridden.find(name) : config.overridden.end();
    if (parent && told != parent->overridden.end() && told->second == text) continue;
    all += (all.empty() ? "" : ", ") + text;
    if (name == "encrypt" && rank == 0) log::warn("overridden: {}: what crosses a network is not encrypted", text);
    if (name == "reproducible" && rank == 0) log::warn("overridden: {}: bits may differ with what is chosen", text);
    if (name == "device") log::warn("overridden: {}: the buffers have to be there", text);
  }
  if (!all.empty()) log::info("overridden: {}", all);
}

}  // namespace tutti::api

#include "api/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
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
bool isKnown(unsigned int version) noexcept {
  constexpr unsigned int kMajor = 10'000, kOldest = 100;
  return version >= kOldest && version / kMajor <= TUTTI_MAJOR;
}

void checkVersion(unsigned int version, const char* kind, const char* call) {
  if (isKnown(version)) return;
  invalid(call, fmt::format("config.version is {}, which tutti {}.{}.{} does not know; start from TUTTI_{}_INITIALIZER",
                            version, TUTTI_MAJOR, TUTTI_MINOR, TUTTI_PATCH, kind));
}

void checkSwitch(int value, const char* name, const char* call) {
  if (value != 0 && value != 1) invalid(call, fmt::format("config.{} is {}: 0 or 1", name, value));
}

// What a newer program says beyond the fields of this library is at its default when it is zero: then nothing is lost.
void checkTail(std::span<const std::byte> given, size_t known, const char* call) {
  const auto said = std::find_if(given.begin() + known, given.end(), [](auto byte) { return byte != std::byte{}; });
  if (said == given.end()) return;
  invalid(call,
          fmt::format("config.size is {}, and the byte at offset {} is not 0: it is of a field that this library, "
                      "tutti {}.{}.{}, is too old to know. Leave that field at its default, or use the library "
                      "that the program was made for",
                      given.size(), said - given.begin(), TUTTI_MAJOR, TUTTI_MINOR, TUTTI_PATCH));
}

// The caller's struct in the size of ours: a shorter one is of an older program, and the rest is as in `initial`, the
// TUTTI_{kind}_INITIALIZER.
template <class Struct>
Struct inFull(const Struct& given, const Struct& initial, const char* kind, const char* call) {
  if (given.size < offsetof(Struct, version) + sizeof given.version || given.size > kLargestStruct)
    invalid(call, fmt::format("config.size is {}; start from TUTTI_{}_INITIALIZER", given.size, kind));
  Struct full = initial;
  std::memcpy(&full, &given, std::min(given.size, sizeof full));
  checkVersion(full.version, kind, call);
  if (given.size > sizeof full) checkTail({reinterpret_cast<const std::byte*>(&given), given.size}, sizeof full, call);
  return full;
}

// Programs of 0.1 have padding there, in which anything may be.
void checkReserved(const tuttiConfig_t& full, const char* call) {
  constexpr unsigned int kNamed = 200;
  if (full.version < kNamed) return;
  const std::pair<const char*, int> all[] = {
      {"reserved0", full.reserved0}, {"reserved1", full.reserved1}, {"reserved2", full.reserved2}};
  for (const auto& [name, value] : all)
    if (value != 0)
      invalid(call, fmt::format("config.{} is {}; it has to be 0: start from TUTTI_CONFIG_INITIALIZER", name, value));
}

void checkChannels(int channels, const char* call) {
  if (channels < 0 || channels > schedule::kMostChannels)
    invalid(call, fmt::format("config.channels is {}: 0 to {}", channels, schedule::kMostChannels));
}

tuttiConfig_t checked(const tuttiConfig_t& given, const char* call) {
  const tuttiConfig_t full = inFull(given, TUTTI_CONFIG_INITIALIZER, "CONFIG", call);
  checkReserved(full, call);
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

// Of an empty text: the plan decides.
template <class Rules, class Parse>
void setRule(const char* text, const char* name, settings::Name variable, Rules& place, Fields& fields,
             const char* call, Parse parse) {
  if (text == nullptr) return;
  const Rules rules = *text == '\0' ? Rules() : field(call, name, [&] { return parse(text); });
  fields.set(name, variable, place, rules, text);
}

void setRules(const tuttiConfig_t& full, comm::Config& config, Fields& fields, const char* call) {
  if (full.channels > 0 && full.channelRules && *full.channelRules != '\0')
    invalid(call, fmt::format("config.channels is {} and config.channelRules '{}': give one of them", full.channels,
                              schedule::shown(full.channelRules)));
  if (full.channels == 0)
    setRule(full.channelRules, "channelRules", "TUTTI_CHANNELS", config.channels, fields, call,
            schedule::parseChannels);
  setRule(full.algorithm, "algorithm", "TUTTI_ALGO", config.algorithms, fields, call, schedule::parseAlgorithms);
  setRule(full.protocol, "protocol", "TUTTI_PROTOCOL", config.protocols, fields, call, plan::parseProtocols);
}

}  // namespace

comm::Config resolve(const tuttiConfig_t* given, comm::Config config, const char* call) {
  if (given == nullptr) return config;
  const tuttiConfig_t full = checked(*given, call);
  Fields fields(config, call);
  setTimes(full, config, fields, call);
  checkChannels(full.channels, call);
  if (full.channels > 0) fields.set("channels", "TUTTI_CHANNELS", config.channels, full.channels, full.channels);
  setRules(full, config, fields, call);
  if (full.transports) {
    const auto list =
        field(call, "transports", [&] { return comm::checkedTransports(full.transports, config.transportSettings); });
    fields.set("transports", "TUTTI_TRANSPORT", config.transports, list, full.transports);
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

namespace {

std::string namesOfAlgorithms(Collective collective) {
  std::string names;
  for (const schedule::Algorithm each : schedule::algorithmsFor(collective))
    names += fmt::format("{}{}", names.empty() ? "" : ", ", nameOf(each));
  return names;
}

// Of one call, whose operation is known: a list of algorithms, and no rules for operations.
schedule::Allowed algorithmsOf(const char* list, Collective collective) {
  const std::string text = schedule::shown(list);
  if (collective == Collective::kSendRecv)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("'{}', but a message between two ranks has no algorithms; give NULL", text));
  if (text.find_first_of(":;") != std::string::npos)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("'{}' is for several operations, but a call is one; give a list of algorithms", text));
  const schedule::Allowed allowed = schedule::parseAllowed(list);
  const auto has = [&](schedule::Algorithm each) { return allowed.has(each); };
  if (!std::ranges::any_of(schedule::algorithmsFor(collective), has))
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} has no algorithm {}; choose one of: {}",
                                                         nameOf(collective), text, namesOfAlgorithms(collective)));
  return allowed;
}

void checkCallChannels(int channels, Collective collective, const char* call) {
  checkChannels(channels, call);
  if (channels > 0 && collective == Collective::kSendRecv)
    invalid(call,
            fmt::format("config.channels is {}, but a message between two ranks has no channels to choose; give 0",
                        channels));
}

void checkCallTimeout(int timeoutMs, const comm::Config& config, const char* call) {
  if (timeoutMs < 0)
    invalid(call,
            fmt::format("config.timeoutMs is {}: milliseconds from 1 on, or 0 for the communicator's", timeoutMs));
  if (timeoutMs > 0 && config.device >= 0)
    invalid(call, fmt::format("config.timeoutMs is {}, but calls on a GPU have the timeout of their communicator: give "
                              "0 here, and tuttiConfig_t.operationTimeoutMs where the communicator is made",
                              timeoutMs));
}

tuttiCallConfig_t checked(const tuttiCallConfig_t& given, const char* call) {
  const tuttiCallConfig_t full = inFull(given, TUTTI_CALL_CONFIG_INITIALIZER, "CALL_CONFIG", call);
  checkSwitch(full.reproducible, "reproducible", call);
  if ((full.flags & ~TUTTI_CALL_PERSISTENT) != 0)
    invalid(call, fmt::format("config.flags is {:#x}: this version of tutti knows TUTTI_CALL_PERSISTENT ({:#x}) alone",
                              full.flags, TUTTI_CALL_PERSISTENT));
  if (full.flags != 0 && full.request == nullptr)
    invalid(call, "config.flags has TUTTI_CALL_PERSISTENT, but config.request is NULL: nobody could start the call");
  if (full.reserved0 != 0)
    invalid(call, fmt::format("config.reserved0 is {}; it has to be 0: start from TUTTI_CALL_CONFIG_INITIALIZER",
                              full.reserved0));
  return full;
}

// What a variable has won over.
void note(std::string& overridden, const char* field, const std::string& value, const auto& won) {
  overridden +=
      fmt::format("{}config.{}={} by {}={}", overridden.empty() ? "" : ", ", field, value, won.first, won.second);
}

// Whether the call's own word counts; else what has won over it is noted.
bool counts(const comm::Config& config, const char* variable, const char* field, const std::string& value,
            std::string& overridden) {
  const auto won = config.variables.find(variable);
  if (won == config.variables.end()) return true;
  if (won->second != value) note(overridden, field, value, *won);
  return false;
}

// The same of a variable that may be silent of this operation.
template <class Value>
bool counts(const comm::Config& config, const char* variable, const schedule::Rules<Value>& rules,
            Collective collective, const char* field, const Value& value, const std::string& text,
            std::string& overridden) {
  const auto won = config.variables.find(variable);
  if (won == config.variables.end() || !rules.says(collective)) return true;
  if (rules.of(collective) != value) note(overridden, field, text, *won);
  return false;
}

}  // namespace

void clearRequest(const tuttiCallConfig_t& given) noexcept {
  constexpr size_t kNeeded = offsetof(tuttiCallConfig_t, request) + sizeof given.request;
  if (given.size < kNeeded || given.size > kLargestStruct || !isKnown(given.version)) return;
  if (given.request != nullptr) *given.request = nullptr;
}

CallOptions resolve(const tuttiCallConfig_t& given, const comm::Config& config, Collective collective,
                    const char* call) {
  const tuttiCallConfig_t full = checked(given, call);
  CallOptions options;
  options.tag = full.tag;
  options.persistent = full.flags != 0;
  options.request = full.request;
  checkCallChannels(full.channels, collective, call);
  checkCallTimeout(full.timeoutMs, config, call);
  options.wish.reproducible =
      full.reproducible != 0 && counts(config, "TUTTI_REPRODUCIBLE", "reproducible", "1", options.unreproducible);
  options.overridden = options.unreproducible;
  if (full.timeoutMs > 0 &&
      counts(config, "TUTTI_OPERATION_TIMEOUT_MS", "timeoutMs", fmt::to_string(full.timeoutMs), options.overridden))
    options.timeout = std::chrono::milliseconds(full.timeoutMs);
  if (full.channels > 0 && counts(config, "TUTTI_CHANNELS", config.channels, collective, "channels", full.channels,
                                  fmt::to_string(full.channels), options.overridden))
    options.wish.channels = static_cast<uint8_t>(full.channels);
  if (full.algorithm == nullptr || *full.algorithm == '\0') return options;
  const auto allowed = field(call, "algorithm", [&] { return algorithmsOf(full.algorithm, collective); });
  if (counts(config, "TUTTI_ALGO", config.algorithms, collective, "algorithm", allowed, full.algorithm,
             options.overridden))
    options.wish.algorithms = allowed;
  return options;
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

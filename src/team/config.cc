#include "team/config.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "device/device.h"
#include "device/network_slots.h"
#include "net/congestion.h"
#include "plan/plan.h"
#include "plan/profile_file.h"
#include "process/log.h"
#include "settings/settings.h"

namespace tutti::comm {
namespace {

// The variables that tuttiConfig_t has a field for.
constexpr settings::Name kShared[] = {"TUTTI_JOIN_TIMEOUT_MS",
                                      "TUTTI_CONNECT_TIMEOUT_MS",
                                      "TUTTI_OPERATION_TIMEOUT_MS",
                                      "TUTTI_HEARTBEAT_MS",
                                      "TUTTI_CHANNELS",
                                      "TUTTI_TRANSPORT",
                                      "TUTTI_ALGO",
                                      "TUTTI_PROTOCOL",
                                      "TUTTI_ENCRYPT",
                                      "TUTTI_REPRODUCIBLE",
                                      "TUTTI_DEVICE"};

EngineWish engineByName(const std::string& name) {
  if (name == "auto") return EngineWish::kAuto;
  if (name == "kernel") return EngineWish::kKernel;
  if (name == "copy") return EngineWish::kCopy;
  if (name == "stream") return EngineWish::kStream;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("TUTTI_ENGINE={}: auto, kernel, copy or stream", name));
}

// The parsers serve the configuration as well: here their errors get the name of the variable.
template <class Parse>
auto parsed(settings::Name variable, Parse&& parse) {
  try {
    return parse(settings::text(variable));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", variable.text(), error.what()));
  }
}

// What transports may be told, as it is or by default; of numbers, whether they may be is known then.
constexpr settings::Name kNumbers[] = {
    "TUTTI_IB_GID_INDEX", "TUTTI_IB_QPS_PER_CONNECTION",   "TUTTI_IB_TC",        "TUTTI_IB_SL", "TUTTI_IB_TIMEOUT",
    "TUTTI_IB_RETRY_CNT", "TUTTI_IB_PCI_RELAXED_ORDERING", "TUTTI_IB_MEMORY_MIB"};

link::TransportSettings settingsOfTransports() {
  link::TransportSettings all;
  all.singleCopy = static_cast<link::SingleCopy>(settings::number("TUTTI_SINGLE_COPY"));
  all.plugins = settings::text("TUTTI_TRANSPORT_PLUGINS");
  all.tcpCongestion = parsed("TUTTI_TCP_CONGESTION", checkedCongestion);
  all.values["TUTTI_IB_HCA"] = settings::text("TUTTI_IB_HCA");
  for (const settings::Name name : kNumbers) all.values[name.text()] = fmt::to_string(settings::number(name));
  return all;
}

// With what a communicator on that GPU has besides. The GPU is asked when a rank's lacks are, or a link is made.
constexpr int kNoneIsAsked = 0;
link::TransportSettings onGpu(link::TransportSettings settings, int device) {
  settings.gpuSlots = device::slotSourceOf(device);
  return settings;
}

}  // namespace

Config Config::fromEnvironment() {
  settings::checkSettingsFile();
  log::enabled(log::Level::kWarn);  // or it would look for TUTTI_DEBUG later, on any thread
  Config config;
  config.joinTimeout = settings::milliseconds("TUTTI_JOIN_TIMEOUT_MS");
  config.connectTimeout = settings::milliseconds("TUTTI_CONNECT_TIMEOUT_MS");
  config.operationTimeout = settings::milliseconds("TUTTI_OPERATION_TIMEOUT_MS");
  if (settings::find("TUTTI_CHANNELS")) config.channels = parsed("TUTTI_CHANNELS", schedule::parseChannels);
  config.transportSettings = settingsOfTransports();
  parsed("TUTTI_TRANSPORT_PLUGINS",
         [&](const std::string&) { return checkedTransports("", config.transportSettings); });
  config.transports = parsed(
      "TUTTI_TRANSPORT", [&](const std::string& list) { return checkedTransports(list, config.transportSettings); });
  if (settings::find("TUTTI_ALGO")) config.algorithms = parsed("TUTTI_ALGO", schedule::parseAlgorithms);
  if (settings::find("TUTTI_PROTOCOL")) config.protocols = parsed("TUTTI_PROTOCOL", plan::parseProtocols);
  config.groupSize = static_cast<int>(settings::number("TUTTI_GROUP_SIZE"));
  config.heartbeat = settings::milliseconds("TUTTI_HEARTBEAT_MS");
  config.encrypt = settings::isOn("TUTTI_ENCRYPT");
  config.reproducible = settings::isOn("TUTTI_REPRODUCIBLE");
  config.preflight = settings::isOn("TUTTI_PREFLIGHT");
  config.provesPlans = settings::isOn("TUTTI_VERIFY");
  if (const auto file = settings::find("TUTTI_PROFILE")) config.prices = parsed("TUTTI_PROFILE", plan::readProfile);
  config.dumpDirectory = settings::text("TUTTI_DUMP_DIR");
  config.traceFile = settings::text("TUTTI_TRACE");
  config.device = parsed("TUTTI_DEVICE", deviceByName);
  config.engine = engineByName(settings::text("TUTTI_ENGINE"));
  config.gpuQueues =
      static_cast<uint32_t>(settings::Environment().number("CUDA_DEVICE_MAX_CONNECTIONS", 1, 32).value_or(8));
  config.topoFile = settings::text("TUTTI_TOPO_FILE");
  config.deviceSlotBytes = static_cast<size_t>(settings::number("TUTTI_GPU_BUFFER_MIB")) << 20;
  config.deviceArgumentBytes = static_cast<size_t>(settings::number("TUTTI_GPU_ARGUMENT_KIB")) << 10;
  config.llFlagMask = (uint64_t{1} << settings::number("TUTTI_LL_FLAG_BITS")) - 1;
  for (const settings::Name name : kShared)
    if (const auto value = settings::find(name)) config.variables.emplace(name.text(), *value);
  return config;
}

link::Registry registryFor(const Config& config) {
  link::Registry registry =
      link::builtinTransports(config.transports, config.device >= 0 ? onGpu(config.transportSettings, config.device)
                                                                    : config.transportSettings);
  if (config.encrypt) registry.demandSecrecy();
  return registry;
}

link::Registry registryOfAll(const Config& config) {
  return link::builtinTransports(config.transports, onGpu(config.transportSettings, kNoneIsAsked));
}

// Whether the communicator is on a GPU may not be known yet: what only such a one has may be named.
std::string checkedTransports(std::string list, const link::TransportSettings& settings) {
  link::builtinTransports(list, onGpu(settings, kNoneIsAsked));
  return list;
}

int deviceByName(const std::string& name) {
  if (name.empty() || name == "cpu") return -1;
  int ordinal = -1;
  const char* const end = name.data() + name.size();
  const bool numbered = name.starts_with("cuda:");
  if (numbered) {
    const auto [stop, error] = std::from_chars(name.data() + 5, end, ordinal);
    if (error != std::errc() || stop != end) ordinal = -1;
  }
  if (name == "cuda") ordinal = std::max(0, device::currentDevice());
  if (ordinal < 0)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("'{}' is no device: cpu, cuda or cuda:N", name));
  return ordinal;
}

}  // namespace tutti::comm

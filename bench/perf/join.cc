#include "perf/join.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "perf/device.h"
#include "perf/environment.h"
#include "perf/failure.h"
#include "perf/thread.h"

namespace tutti::perf {
namespace {

using Comms = std::vector<tuttiComm_t>;

constexpr int kHost = -1;

// The ranks of this process in one communicator: where each one's buffers are, and which ranks they are.
struct Cast {
  std::vector<int> devices;  // a GPU, or kHost
  int first = 0, ranks = 1;
};

// In the library the environment wins over a program's configuration. Here the configuration is what somebody wrote on
// the command line, which is nearer than the environment, and where the buffers are is for this program to say.
void unsetWhatOptionsSay(const Options& options) {
  ::unsetenv("TUTTI_DEVICE");
  if (options.timeoutSeconds > 0) ::unsetenv("TUTTI_OPERATION_TIMEOUT_MS");
  if (!options.transport.empty()) ::unsetenv("TUTTI_TRANSPORT");
  if (!options.algorithm.empty()) ::unsetenv("TUTTI_ALGO");
}

tuttiConfig_t configOf(const Options& options) {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.operationTimeoutMs = options.timeoutSeconds * 1000;
  if (!options.transport.empty()) config.transports = options.transport.c_str();
  if (!options.algorithm.empty()) config.algorithm = options.algorithm.c_str();
  return config;
}

bool isDefault(const tuttiConfig_t& config) {
  return config.operationTimeoutMs == 0 && config.transports == nullptr && config.algorithm == nullptr;
}

tuttiComm_t joinOne(const Cast& cast, size_t i, const tuttiUniqueId& id, tuttiConfig_t config) {
  const int rank = cast.first + static_cast<int>(i), device = cast.devices[i];
  const std::string place = device == kHost ? "cpu" : fmt::format("cuda:{}", device);
  config.device = place.c_str();
  tuttiComm_t comm = nullptr;
  require(tuttiCommInitRankConfig(&comm, cast.ranks, id, rank, &config), "tuttiCommInitRankConfig", rank, nullptr);
  return comm;
}

// Joining blocks until all have come, so each rank of the process does it from a thread of its own.
Comms joinFromThreads(const Cast& cast, const tuttiUniqueId& id, const tuttiConfig_t& config) {
  Comms comms(cast.devices.size());
  std::exception_ptr failure;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < comms.size(); ++i) {
    threads.push_back(startThread([&, i] {
      try {
        comms[i] = joinOne(cast, i, id, config);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }));
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return comms;
}

Comms joinInOneProcess(const Options& options, const Cast& cast) {
  const tuttiConfig_t config = configOf(options);
  if (!options.parallelInit && isDefault(config)) {
    Comms comms(cast.devices.size());
    require(tuttiCommInitAll(comms.data(), cast.ranks, cast.devices.data()), "tuttiCommInitAll", -1, nullptr);
    return comms;
  }
  tuttiUniqueId id;
  require(tuttiGetUniqueId(&id), "tuttiGetUniqueId", -1, nullptr);
  return joinFromThreads(cast, id, config);
}

// A GPU for each rank; where there are fewer than ranks on this host, they go round. `before`: processes on this host
// whose ranks come first.
std::vector<int> devicesFor(const Options& options, int before) {
  const int ranks = options.localRanks(), count = device::count();
  std::vector<int> devices;
  for (int i = 0; i < ranks; ++i) devices.push_back((before * ranks + i) % count);
  const bool shared = std::set<int>(devices.begin(), devices.end()).size() < devices.size();
  if (shared && options.nullStream && options.threads > 1)
    throw UsageError(
        "-y 1 with threads that share a GPU: on its one default stream their operations would wait for each other in "
        "turn, without end; leave -y at 0, or give -t 1");
  return devices;
}

std::vector<Seat> seatsOf(const Comms& comms, const Comms& controls) {
  std::vector<Seat> seats;
  for (size_t i = 0; i < comms.size(); ++i) seats.push_back({comms[i], controls[i]});
  return seats;
}

}  // namespace

std::vector<Seat> joinAlone(const Options& options) {
  const int ranks = options.localRanks();
  const std::vector<int> host(static_cast<size_t>(ranks), kHost);
  const std::vector<int> devices = options.onGpus ? devicesFor(options, 0) : host;
  const Comms controls = joinInOneProcess(options, {host, 0, ranks});
  return seatsOf(options.onGpus ? joinInOneProcess(options, {devices, 0, ranks}) : controls, controls);
}

// The library reads the environment first, then the configuration field by field, and makes nothing where it refuses
// one. The device is the last that can be wrong: when that is refused, all others are good.
void settleSettings(const Options& options) {
  tuttiConfig_t config = configOf(options);
  config.device = "?";
  tuttiComm_t none = nullptr;
  const tuttiResult_t result = tuttiCommInitEnv(&none, &config);
  const bool good = std::string(tuttiGetLastError(nullptr)).find("config.device") != std::string::npos;
  if (!good) require(result, "tuttiCommInitEnv", -1, nullptr);
  unsetWhatOptionsSay(options);
}

namespace {

// Before there is a communicator to ask: as --ranks, or whoever starts ranks by hand, has set it; -1 elsewhere.
int rankBySetting() {
  const std::string text = variable("TUTTI_RANK").value_or("");
  int rank = -1;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, rank);
  return failure == std::errc() && stop == end && rank >= 0 ? rank : -1;
}

}  // namespace

Processes::Processes(const Options& options) {
  // Whose word counts is the library's to know. Only what it does without any is asked for here.
  const bool asks = !variable("TUTTI_LAUNCHER");
  if (asks) setenv("TUTTI_LAUNCHER", "auto-or-none", 1);
  tuttiConfig_t config = configOf(options);
  config.device = "cpu";
  require(tuttiCommInitEnv(&comm_, &config), "tuttiCommInitEnv", rankBySetting(), nullptr);
  if (asks) unsetenv("TUTTI_LAUNCHER");  // reports show what the user has set
  require(tuttiCommUserRank(comm_, &rank_), "tuttiCommUserRank", -1, comm_);
  require(tuttiCommCount(comm_, &size_), "tuttiCommCount", rank_, comm_);
}

void Processes::leave() { require(tuttiCommDestroy(comm_), "tuttiCommDestroy", rank_, nullptr); }

Comms Processes::join(const std::vector<int>& devices, const tuttiConfig_t& config) const {
  tuttiUniqueId id{};
  if (rank_ == 0) require(tuttiGetUniqueId(&id), "tuttiGetUniqueId", rank_, comm_);
  require(tuttiBroadcast(&id, &id, sizeof id, tuttiInt8, 0, comm_, nullptr), "tuttiBroadcast", rank_, comm_);
  const int perProcess = static_cast<int>(devices.size());
  return joinFromThreads({devices, rank_ * perProcess, size_ * perProcess}, id, config);
}

int Processes::onThisHost() const {
  constexpr size_t kLength = 64;
  std::string mine(kLength, '\0'), all(kLength * static_cast<size_t>(size_), '\0');
  gethostname(mine.data(), kLength - 1);
  require(tuttiAllGather(mine.data(), all.data(), kLength, tuttiInt8, comm_, nullptr), "tuttiAllGather", rank_, comm_);
  int before = 0;
  for (size_t r = 0; r < static_cast<size_t>(rank_); ++r) before += all.compare(r * kLength, kLength, mine) == 0;
  return before;
}

std::vector<Seat> joinAll(const Options& options, Processes& processes) {
  const std::vector<int> host(static_cast<size_t>(options.localRanks()), kHost);
  const bool single = host.size() == 1;
  if (processes.alone() && !single) {
    processes.leave();
    return joinAlone(options);
  }
  if (options.ranks > 0 && options.ranks != processes.size_)
    throw Failure(fmt::format("--ranks {}: a launcher has started {} processes already; leave --ranks out",
                              options.ranks, processes.size_));
  const tuttiConfig_t config = configOf(options);
  const std::vector<int> devices = options.onGpus ? devicesFor(options, processes.onThisHost()) : host;
  const Comms controls = single ? Comms{processes.comm_} : processes.join(host, config);
  const Comms comms = options.onGpus ? processes.join(devices, config) : controls;
  if (!single) processes.leave();
  return seatsOf(comms, controls);
}

}  // namespace tutti::perf

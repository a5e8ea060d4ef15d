#include "perf/join.h"

#include <unistd.h>

#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "perf/device.h"
#include "perf/failure.h"
#include "perf/launch.h"

namespace tutti::perf {
namespace {

using Comms = std::vector<tuttiComm_t>;

constexpr int kHost = -1;

// The ranks of this process in one communicator: where each one's buffers are, and which ranks they are.
struct Cast {
  std::vector<int> devices;  // a GPU, or kHost
  int first = 0, ranks = 1;
};

// Where the options and the environment differ, the options say where buffers are.
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
    threads.emplace_back([&, i] {
      try {
        comms[i] = joinOne(cast, i, id, config);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
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

// The processes of a launcher in a communicator for host memory, through which they find others.
class Processes {
 public:
  explicit Processes(const Options& options) {
    tuttiConfig_t config = configOf(options);
    config.device = "cpu";
    require(tuttiCommInitEnv(&comm_, &config), "tuttiCommInitEnv", -1, nullptr);
    require(tuttiCommUserRank(comm_, &rank_), "tuttiCommUserRank", -1, comm_);
    require(tuttiCommCount(comm_, &size_), "tuttiCommCount", rank_, comm_);
  }

  int size() const { return size_; }
  tuttiComm_t comm() const { return comm_; }
  void leave() { require(tuttiCommDestroy(comm_), "tuttiCommDestroy", rank_, nullptr); }

  // Process 0 makes the id of the larger communicator, and passes it around.
  Comms join(const std::vector<int>& devices, const tuttiConfig_t& config) const {
    tuttiUniqueId id{};
    if (rank_ == 0) require(tuttiGetUniqueId(&id), "tuttiGetUniqueId", rank_, comm_);
    require(tuttiBroadcast(&id, &id, sizeof id, tuttiInt8, 0, comm_, nullptr), "tuttiBroadcast", rank_, comm_);
    const int perProcess = static_cast<int>(devices.size());
    return joinFromThreads({devices, rank_ * perProcess, size_ * perProcess}, id, config);
  }

  // How many of the processes before this one are on the same host.
  int onThisHost() const {
    constexpr size_t kLength = 64;
    std::string mine(kLength, '\0'), all(kLength * static_cast<size_t>(size_), '\0');
    gethostname(mine.data(), kLength - 1);
    require(tuttiAllGather(mine.data(), all.data(), kLength, tuttiInt8, comm_, nullptr), "tuttiAllGather", rank_,
            comm_);
    int before = 0;
    for (size_t r = 0; r < static_cast<size_t>(rank_); ++r) before += all.compare(r * kLength, kLength, mine) == 0;
    return before;
  }

 private:
  tuttiComm_t comm_ = nullptr;
  int rank_ = 0, size_ = 0;
};

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

std::vector<Seat> joinWithoutLauncher(const Options& options) {
  const int ranks = options.localRanks();
  const std::vector<int> host(static_cast<size_t>(ranks), kHost);
  const std::vector<int> devices = options.onGpus ? devicesFor(options, 0) : host;
  const Comms controls = joinInOneProcess(options, {host, 0, ranks});
  return seatsOf(options.onGpus ? joinInOneProcess(options, {devices, 0, ranks}) : controls, controls);
}

}  // namespace

std::vector<Seat> joinAll(const Options& options) {
  if (!launched()) return joinWithoutLauncher(options);
  Processes processes(options);
  if (options.ranks > 0 && options.ranks != processes.size()) {
    throw Failure(fmt::format("--ranks {}: a launcher has started {} processes already; leave --ranks out",
                              options.ranks, processes.size()));
  }
  const std::vector<int> host(static_cast<size_t>(options.localRanks()), kHost);
  const tuttiConfig_t config = configOf(options);
  const std::vector<int> devices = options.onGpus ? devicesFor(options, processes.onThisHost()) : host;
  const bool single = host.size() == 1;
  const Comms controls = single ? Comms{processes.comm()} : processes.join(host, config);
  const Comms comms = options.onGpus ? processes.join(devices, config) : controls;
  if (!single) processes.leave();
  return seatsOf(comms, controls);
}

}  // namespace tutti::perf

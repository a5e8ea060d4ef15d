#include "perf/join.h"

#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "perf/failure.h"
#include "perf/launch.h"

namespace tutti::perf {
namespace {

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

// Joining blocks until all have come, so each rank of the process does it from a thread of its own.
std::vector<tuttiComm_t> joinFromThreads(int first, int count, int ranks, const tuttiUniqueId& id,
                                         const tuttiConfig_t& config) {
  std::vector<tuttiComm_t> comms(static_cast<size_t>(count));
  std::exception_ptr failure;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        tuttiComm_t* comm = &comms[static_cast<size_t>(i)];
        require(tuttiCommInitRankConfig(comm, ranks, id, first + i, &config), "tuttiCommInitRankConfig", first + i,
                nullptr);
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

std::vector<tuttiComm_t> joinInOneProcess(const Options& options, const tuttiConfig_t& config) {
  const int count = options.localRanks();
  if (!options.parallelInit && isDefault(config)) {
    std::vector<tuttiComm_t> comms(static_cast<size_t>(count));
    require(tuttiCommInitAll(comms.data(), count, nullptr), "tuttiCommInitAll", -1, nullptr);
    return comms;
  }
  tuttiUniqueId id;
  require(tuttiGetUniqueId(&id), "tuttiGetUniqueId", -1, nullptr);
  return joinFromThreads(0, count, count, id, config);
}

// Several ranks in each of several processes: the processes join first, and pass the id of the larger communicator
// around.
std::vector<tuttiComm_t> joinThroughProcesses(tuttiComm_t processes, int rank, int size, int perProcess,
                                              const tuttiConfig_t& config) {
  tuttiUniqueId id{};
  if (rank == 0) require(tuttiGetUniqueId(&id), "tuttiGetUniqueId", rank, processes);
  require(tuttiBroadcast(&id, &id, sizeof id, tuttiInt8, 0, processes, nullptr), "tuttiBroadcast", rank, processes);
  std::vector<tuttiComm_t> comms = joinFromThreads(rank * perProcess, perProcess, size * perProcess, id, config);
  require(tuttiCommDestroy(processes), "tuttiCommDestroy", rank, nullptr);
  return comms;
}

}  // namespace

std::vector<tuttiComm_t> joinAll(const Options& options) {
  const tuttiConfig_t config = configOf(options);
  if (!launched()) return joinInOneProcess(options, config);
  tuttiComm_t processes = nullptr;
  require(tuttiCommInitEnv(&processes, &config), "tuttiCommInitEnv", -1, nullptr);
  int rank = 0, size = 0;
  require(tuttiCommUserRank(processes, &rank), "tuttiCommUserRank", -1, processes);
  require(tuttiCommCount(processes, &size), "tuttiCommCount", rank, processes);
  if (options.ranks > 0 && options.ranks != size) {
    throw Failure(
        fmt::format("--ranks {}: a launcher has started {} processes already; leave --ranks out", options.ranks, size));
  }
  if (options.localRanks() == 1) return {processes};
  return joinThroughProcesses(processes, rank, size, options.localRanks(), config);
}

}  // namespace tutti::perf

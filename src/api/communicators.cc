// Communicators: made, split, asked, ended.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>

#include "api/check.h"
#include "api/guard.h"
#include "api/joiner.h"
#include "comm/dump.h"

using namespace tutti;
using namespace tutti::api;

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
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: config.size is {}; start from TUTTI_CONFIG_INITIALIZER", call, given.size));
  tuttiConfig_t full = TUTTI_CONFIG_INITIALIZER;  // an older caller's shorter struct leaves the rest at its default
  std::memcpy(&full, &given, given.size);
  return full;
}

void resolveTimes(const tuttiConfig_t& full, comm::Config& config, const char* call) {
  const auto timeout = [call](const char* name, int value, std::chrono::milliseconds& into) {
    if (value < 0) throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: config.{} is {}", call, name, value));
    if (value > 0) into = std::chrono::milliseconds(value);
  };
  timeout("joinTimeoutMs", full.joinTimeoutMs, config.joinTimeout);
  timeout("connectTimeoutMs", full.connectTimeoutMs, config.connectTimeout);
  timeout("operationTimeoutMs", full.operationTimeoutMs, config.operationTimeout);
  if (full.heartbeatMs < -1)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: config.heartbeatMs is {}", call, full.heartbeatMs));
  if (full.heartbeatMs != 0) config.heartbeat = std::chrono::milliseconds(std::max(0, full.heartbeatMs));
}

// The environment's settings, and over them what the caller's struct says.
comm::Config resolve(const tuttiConfig_t* given, comm::Config config, const char* call) {
  if (given == nullptr) return config;
  const tuttiConfig_t full = completed(*given, call);
  resolveTimes(full, config, call);
  if (full.channels < 0 || full.channels > 64)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: config.channels is {}: 0 to 64", call, full.channels));
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

void checkRanks(int ranks, int rank, const char* call) {
  if (ranks < 1) throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: ranks is {}", call, ranks));
  checkRank(rank, ranks, call, "rank");
}

control::UniqueId decodeId(const tuttiUniqueId& id) {
  static_assert(sizeof id.internal == control::kUniqueIdBytes);
  control::RawUniqueId raw;
  std::memcpy(raw.data(), id.internal, raw.size());
  return control::decode(raw);
}

// Joins here and now, or in the background when the caller's struct says so.
tuttiResult_t make(tuttiComm_t* comm, int rank, int size, const tuttiConfig_t* config, Join join) {
  const bool inBackground = config != nullptr && config->size >= sizeof *config && config->nonBlocking != 0;
  *comm = inBackground ? joinInBackground(rank, size, std::move(join)) : makeHandle(join({}));
  return inBackground ? tuttiInProgress : tuttiSuccess;
}

void checkDevices(const int* devices, int ranks, const char* call) {
  for (int r = 0; devices && r < ranks; ++r)
    if (devices[r] < -1)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: devices[{}] is {}: -1 for host memory, or a GPU's number", call, r, devices[r]));
}

// Ranks that are threads must not wait for one another in turn: each joins on a thread of its own. The first that fails
// stops the others, who would wait for it until their deadline.
class JoinOfAll {
 public:
  explicit JoinOfAll(int ranks) : made_(static_cast<size_t>(ranks)) {}

  void start(const control::UniqueId& id, comm::Config config, const int* devices) {
    threads_.reserve(made_.size());
    for (size_t r = 0; r < made_.size() && !failed_.load(std::memory_order_relaxed); ++r) {
      if (devices) config.device = devices[r];
      attempt([&] { threads_.emplace_back([this, id, r, config] { attempt([&] { join(id, r, config); }); }); });
    }
  }
  std::vector<std::shared_ptr<comm::Communicator>> finish() {
    for (auto& thread : threads_) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    return std::move(made_);
  }

 private:
  void join(const control::UniqueId& id, size_t rank, const comm::Config& config) {
    made_[rank] = comm::Communicator::join(id, static_cast<int>(rank), static_cast<int>(made_.size()), config,
                                           [this] { return failed_.load(std::memory_order_relaxed); });
  }
  // Keeps the first failure. Who wrote it is joined before it is read.
  template <class Body>
  void attempt(Body&& body) noexcept {
    try {
      std::forward<Body>(body)();
    } catch (...) {
      if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
    }
  }

  std::vector<std::shared_ptr<comm::Communicator>> made_;
  std::vector<std::thread> threads_;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

void initAll(tuttiComm_t* comms, int ranks, const int* devices) {
  const comm::Config config = comm::Config::fromEnvironment();
  const auto id = control::openRoot(control::Network::fromEnvironment(), Deadline::in(config.joinTimeout));
  JoinOfAll all(ranks);
  all.start(id, config, devices);
  const auto made = all.finish();
  std::transform(made.begin(), made.end(), comms, makeHandle);
}

tuttiResult_t initRank(tuttiComm_t* comm, int ranks, const tuttiUniqueId& id, int rank, const tuttiConfig_t* config,
                       const char* name) {
  tuttiResult_t result = tuttiSuccess;
  const tuttiResult_t failed = guarded(nullptr, [&] {
    checkPointer(comm, name, "comm");
    checkRanks(ranks, rank, name);
    const auto settings = resolve(config, comm::Config::fromEnvironment(), name);
    const auto where = decodeId(id);
    result = make(comm, rank, ranks, config, [=](const auto& cancelled) {
      return comm::Communicator::join(where, rank, ranks, settings, cancelled);
    });
  });
  return failed == tuttiSuccess ? result : failed;
}

void copyText(char* into, size_t room, const std::string& text) {
  const size_t length = std::min(room - 1, text.size());
  std::memcpy(into, text.data(), length);
  into[length] = '\0';
}

}  // namespace

extern "C" {

tuttiResult_t tuttiGetUniqueId(tuttiUniqueId* id) {
  return guarded(nullptr, [&] {
    checkPointer(id, "tuttiGetUniqueId", "id");
    const auto timeout = comm::Config::fromEnvironment().joinTimeout;
    const auto raw = control::encode(control::openRoot(control::Network::fromEnvironment(), Deadline::in(timeout)));
    std::memcpy(id->internal, raw.data(), raw.size());
  });
}

tuttiResult_t tuttiCommInitRank(tuttiComm_t* comm, int ranks, tuttiUniqueId id, int rank) {
  return initRank(comm, ranks, id, rank, nullptr, "tuttiCommInitRank");
}

tuttiResult_t tuttiCommInitRankConfig(tuttiComm_t* comm, int ranks, tuttiUniqueId id, int rank,
                                      const tuttiConfig_t* config) {
  return initRank(comm, ranks, id, rank, config, "tuttiCommInitRankConfig");
}

tuttiResult_t tuttiCommInitEnv(tuttiComm_t* comm, const tuttiConfig_t* config) {
  const char* name = "tuttiCommInitEnv";
  tuttiResult_t result = tuttiSuccess;
  const tuttiResult_t failed = guarded(nullptr, [&] {
    checkPointer(comm, name, "comm");
    const auto settings = resolve(config, comm::Config::fromEnvironment(), name);
    const control::Launch launch = control::readLaunch();
    const auto network = control::Network::fromEnvironment();
    result = make(comm, launch.rank, launch.size, config, [=](const auto& cancelled) {
      const auto id = control::meetingPlace(launch, network, Deadline::in(settings.joinTimeout));
      return comm::Communicator::join(id, launch.rank, launch.size, settings, cancelled);
    });
  });
  return failed == tuttiSuccess ? result : failed;
}

tuttiResult_t tuttiCommInitAll(tuttiComm_t* comms, int ranks, const int* devices) {
  const char* name = "tuttiCommInitAll";
  return guarded(nullptr, [&] {
    checkPointer(comms, name, "comms");
    checkRanks(ranks, 0, name);
    checkDevices(devices, ranks, name);
    initAll(comms, ranks, devices);
  });
}

tuttiResult_t tuttiCommSplit(tuttiComm_t comm, int color, int key, tuttiComm_t* child, const tuttiConfig_t* config) {
  const char* name = "tuttiCommSplit";
  return guarded(comm, [&] {
    Visit visit(comm, name);
    checkPointer(child, name, "child");
    if (color < 0 && color != TUTTI_SPLIT_NOCOLOR)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: color is {}: 0 or more, or TUTTI_SPLIT_NOCOLOR", name, color));
    const auto made = visit->split(color, key, resolve(config, visit->config(), name));
    *child = made ? makeHandle(made) : nullptr;
  });
}

tuttiResult_t tuttiCommShrink(tuttiComm_t comm, tuttiComm_t* child, const tuttiConfig_t* config) {
  const char* name = "tuttiCommShrink";
  return guarded(comm, [&] {
    Visit visit(comm, name);
    checkPointer(child, name, "child");
    *child = makeHandle(visit->shrink(resolve(config, visit->config(), name)));
  });
}

tuttiResult_t tuttiCommFinalize(tuttiComm_t comm) {
  return guarded(comm, [&] {
    Visit visit(comm, "tuttiCommFinalize");
    visit->waitUntilIdle();
  });
}

tuttiResult_t tuttiCommDestroy(tuttiComm_t comm) {
  if (comm == nullptr) return tuttiSuccess;
  return guarded(comm, [&] {
    checkHandle(comm, "tuttiCommDestroy");
    if (dropStray(comm)) return;
    Visit visit(comm, "tuttiCommDestroy");
    visit->waitUntilIdle();
    destroyHandle(comm);
  });
}

tuttiResult_t tuttiCommAbort(tuttiComm_t comm) {
  return guarded(comm, [&] {
    checkHandle(comm, "tuttiCommAbort");
    abortHandle(comm, "tuttiCommAbort");
  });
}

tuttiResult_t tuttiCommRevoke(tuttiComm_t comm) {
  return guarded(comm, [&] {
    const auto communicator = reach(comm, "tuttiCommRevoke");
    if (!communicator) return;
    const std::string text = fmt::format("{} revoked the communicator", communicator->rankName(comm->rank));
    communicator->stop(control::Stop::kRevoke, Error(ErrorCode::kRemote, text));
  });
}

tuttiResult_t tuttiCommDump(tuttiComm_t comm, const char* path) {
  const char* name = "tuttiCommDump";
  return guarded(comm, [&] {
    checkPointer(path, name, "path");
    const auto communicator = reach(comm, name);
    if (!communicator)
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: comm (rank {}) is gone", name, comm->rank));
    comm::writeDump(*communicator, path, name);
  });
}

tuttiResult_t tuttiCommGetAsyncError(tuttiComm_t comm, tuttiResult_t* result) {
  const char* name = "tuttiCommGetAsyncError";
  return guarded(comm, [&] {
    checkHandle(comm, name);
    checkPointer(result, name, "result");
    const uint32_t now = comm->state.load(std::memory_order_acquire);
    refuseGone(*comm, name, now);
    std::lock_guard lock(comm->errorMutex);
    *result = now & kJoining ? tuttiInProgress : comm->asyncError;
    if (*result != tuttiSuccess) return;
    const auto communicator = comm->stopper.lock();
    if (!communicator) return;
    if (communicator->broken()) {
      const Error error = communicator->failure("no call");
      *result = comm->asyncError = static_cast<tuttiResult_t>(error.code());
      comm->lastError = error.what();
    } else if (!communicator->idle()) {
      *result = tuttiInProgress;
    }
  });
}

tuttiResult_t tuttiCommCount(tuttiComm_t comm, int* count) {
  return guarded(comm, [&] {
    Visit visit(comm, "tuttiCommCount");
    checkPointer(count, "tuttiCommCount", "count");
    *count = comm->size;
  });
}

tuttiResult_t tuttiCommUserRank(tuttiComm_t comm, int* rank) {
  return guarded(comm, [&] {
    Visit visit(comm, "tuttiCommUserRank");
    checkPointer(rank, "tuttiCommUserRank", "rank");
    *rank = comm->rank;
  });
}

tuttiResult_t tuttiCommDevice(tuttiComm_t comm, int* device) {
  return guarded(comm, [&] {
    Visit visit(comm, "tuttiCommDevice");
    checkPointer(device, "tuttiCommDevice", "device");
    *device = visit->config().device;
  });
}

tuttiResult_t tuttiCommGetStats(tuttiComm_t comm, tuttiCommStats_t* stats) {
  const char* name = "tuttiCommGetStats";
  return guarded(comm, [&] {
    Visit visit(comm, name);
    checkPointer(stats, name, "stats");
    if (stats->size < sizeof(size_t) || stats->size > sizeof(tuttiCommStats_t))
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: stats->size is {}; set it to sizeof(tuttiCommStats_t)", name, stats->size));
    const comm::Stats now = visit->stats();
    tuttiCommStats_t full = {};
    full.size = stats->size;
    full.memoryBytes = now.memoryBytes;
    full.connectedPeers = now.connectedPeers;
    full.operations = now.operations;
    full.directSlots = now.directSlots;
    copyText(full.lastAlgorithm, sizeof full.lastAlgorithm, now.lastAlgorithm);
    copyText(full.lastTransports, sizeof full.lastTransports, now.lastTransports);
    std::memcpy(stats, &full, stats->size);
  });
}

}  // extern "C"

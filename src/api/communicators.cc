// Communicators: made, split, asked, ended.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>

#include "api/check.h"
#include "api/configuration.h"
#include "api/guard.h"
#include "api/join_all.h"
#include "api/joiner.h"
#include "api/process_text.h"
#include "diagnose/dump.h"
#include "job/ranks.h"
#include "join/open_root.h"
#include "launch/launcher.h"
#include "launch/rendezvous.h"
#include "process/settings_warnings.h"

using namespace tutti;
using namespace tutti::api;

namespace {

void checkRanks(int ranks, int rank, const char* call) {
  if (ranks < 1 || ranks > control::kMaxRanks)
    invalid(call, fmt::format("ranks is {}: there can be 1 to {}", ranks, control::kMaxRanks));
  checkRank(rank, ranks, call, "rank");
}

control::UniqueId decodeId(const tuttiUniqueId& id) {
  static_assert(sizeof id.internal == control::kUniqueIdBytes);
  control::RawUniqueId raw;
  std::memcpy(raw.data(), id.internal, raw.size());
  return control::decode(raw);
}

// Joins here and now, or in the background when the caller's struct says so. `join` reads nothing of the environment
// (but for the system's resolver): while a thread of the library's looks through it, the program may change it.
tuttiResult_t make(tuttiComm_t* comm, int rank, int size, const tuttiConfig_t* config, Join join) {
  if (rank == 0) {
    settings::warnOfStrangeSettings();
    settings::tellForeignNames();
  }
  const bool inBackground = isNonBlocking(config);
  *comm = inBackground ? joinInBackground(rank, size, std::move(join)) : makeHandle(join({}));
  return inBackground ? tuttiInProgress : tuttiSuccess;
}

// What fails on this rank alone - an argument, a refusal, memory - the others would not hear of: they would wait for it
// as long as a join may take. As with every collective, the communicator fails. Once the join has begun they hear of a
// refusal or a missing rank where they meet; but of a rank that lacks something on its way there they may not.
template <class Body>
void orTellTheOthers(comm::Team& team, Body body) {
  bool begun = false;
  try {
    body([&begun] { begun = true; });
  } catch (const Error& error) {
    if (!team.broken() && (!begun || error.code() == ErrorCode::kSystem)) team.fail(error);
    throw;
  } catch (const std::bad_alloc&) {
    team.fail(outOfMemory);
    throw;
  } catch (const std::system_error& error) {  // of a mutex, say
    team.fail(errorOrOutOfMemory([&] { return Error(ErrorCode::kSystem, error.what()); }));
    throw;
  }
}

// All or none: nobody else would end those that have been made.
std::vector<tuttiComm_t> makeHandles(const std::vector<std::shared_ptr<comm::Communicator>>& made, const char* call) {
  std::vector<tuttiComm_t> handles;
  handles.reserve(made.size());
  try {
    for (const auto& communicator : made) handles.push_back(makeHandle(communicator));
  } catch (...) {
    for (const tuttiComm_t handle : handles) {
      const CallGuard visit(handle, call);
      destroyHandle(handle);
    }
    throw;
  }
  return handles;
}

void checkDevices(const int* devices, int ranks, const char* call) {
  for (int r = 0; devices && r < ranks; ++r)
    if (devices[r] < -1)
      invalid(call, fmt::format("devices[{}] is {}: -1 for host memory, or a GPU's number", r, devices[r]));
}

tuttiResult_t initRank(tuttiComm_t* comm, int ranks, const tuttiUniqueId& id, int rank, const tuttiConfig_t* config,
                       const char* name) {
  tuttiResult_t result = tuttiSuccess;
  const tuttiResult_t failed = guarded(nullptr, [&] {
    checkPointer(comm, name, "comm");
    checkRanks(ranks, rank, name);
    const auto settings = resolve(config, comm::Config::fromEnvironment(), name);
    tellOverridden(settings, rank);
    const auto where = decodeId(id);
    const auto secret = control::readSecret();
    const auto self = comm::Self::find(settings);
    result = make(comm, rank, ranks, config, [=](const auto& cancelled) {
      const auto whole = control::withSecret(where, secret, rank);
      return comm::Communicator::join(whole, rank, ranks, settings, self, cancelled);
    });
  });
  return failed == tuttiSuccess ? result : failed;
}

// A rank that cannot join looks for the others to tell them so, and for no longer than its own error may wait.
Deadline timeToMeet(const comm::Config& settings, const comm::Self& self) {
  constexpr std::chrono::milliseconds kOnlyToTell(1000);
  return Deadline::in(self.lack ? std::min(kOnlyToTell, settings.joinTimeout) : settings.joinTimeout);
}

// The root stays for as long as others may come, who hear there what rank 0 lacks.
control::UniqueId meetingPlaceFor(const control::LaunchInfo& launch, const comm::Config& settings,
                                  const comm::Self& self, const comm::Communicator::Cancelled& cancelled) try {
  const control::BoundedWait patience(timeToMeet(settings, self), cancelled, launch.rank);
  return control::meetingPlace(launch, self.network, patience, Deadline::in(settings.joinTimeout));
} catch (const Error&) {
  self.check();
  throw;
}

// What is misspelt may be what is missing.
control::LaunchInfo launchOrHints() {
  try {
    return control::readLaunch();
  } catch (const Error&) {
    settings::warnOfStrangeSettings();
    throw;
  }
}

comm::Config resolveForChild(const tuttiConfig_t* config, const comm::Team& parent, const char* call) {
  comm::Config settings = resolve(config, parent.config(), call);
  tellOverridden(settings, parent.rank(), &parent.config());
  return settings;
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
    settings::warnOfStrangeSettings();
    const auto raw = control::encode(control::openRoot(Network::fromEnvironment(), Deadline::in(timeout)));
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
    const control::LaunchInfo launch = launchOrHints();
    tellOverridden(settings, launch.rank);
    const auto self = comm::Self::find(settings);
    result = make(comm, launch.rank, launch.size, config, [=](const auto& cancelled) {
      const auto id = meetingPlaceFor(launch, settings, self, cancelled);
      return comm::Communicator::join(id, launch.rank, launch.size, settings, self, cancelled);
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
    std::ranges::copy(makeHandles(joinAll(ranks, devices), name), comms);
  });
}

tuttiResult_t tuttiCommSplit(tuttiComm_t comm, int color, int key, tuttiComm_t* child, const tuttiConfig_t* config) {
  const char* name = "tuttiCommSplit";
  return guarded(comm, [&] {
    CallGuard visit(comm, name);
    orTellTheOthers(visit->team(), [&](const auto& begun) {
      checkPointer(child, name, "child");
      if (color < 0 && color != TUTTI_SPLIT_NOCOLOR)
        invalid(name, fmt::format("color is {}: 0 or more, or TUTTI_SPLIT_NOCOLOR", color));
      const auto made = visit->split(color, key, resolveForChild(config, visit->team(), name), begun);
      *child = made ? makeHandle(made) : nullptr;
    });
  });
}

tuttiResult_t tuttiCommShrink(tuttiComm_t comm, const int* leftOut, int leftOutCount, tuttiComm_t* child,
                              const tuttiConfig_t* config, unsigned int flags) {
  const char* name = "tuttiCommShrink";
  return guarded(comm, [&] {
    CallGuard visit(comm, name);
    checkFlags(flags, name);
    if (leftOut != nullptr || leftOutCount != 0) invalid(name, "leftOut is no list yet: give NULL, and leftOutCount 0");
    checkPointer(child, name, "child");
    *child = makeHandle(visit->shrink(resolveForChild(config, visit->team(), name)));
  });
}

tuttiResult_t tuttiCommFinalize(tuttiComm_t comm) {
  if (comm == nullptr) return tuttiSuccess;
  bool done = true;
  const tuttiResult_t failed = guarded(comm, [&] {
    CallGuard visit(comm, "tuttiCommFinalize");
    if (!comm->nonBlocking) return visit->executor().waitUntilIdle();
    done = visit->executor().idle();
    comm->finalizing.store(!done, std::memory_order_relaxed);
  });
  return failed == tuttiSuccess && !done ? tuttiInProgress : failed;
}

tuttiResult_t tuttiCommDestroy(tuttiComm_t comm) {
  if (comm == nullptr) return tuttiSuccess;
  return guarded(comm, [&] {
    checkHandle(comm, "tuttiCommDestroy");
    if (dropStray(comm)) return;
    CallGuard visit(comm, "tuttiCommDestroy");
    visit->executor().waitUntilIdle();
    destroyHandle(comm);
  });
}

tuttiResult_t tuttiCommAbort(tuttiComm_t comm) {
  if (comm == nullptr) return tuttiSuccess;
  return guarded(comm, [&] {
    checkHandle(comm, "tuttiCommAbort");
    abortHandle(comm, "tuttiCommAbort");
  });
}

tuttiResult_t tuttiCommRevoke(tuttiComm_t comm, unsigned int flags) {
  return guarded(comm, [&] {
    checkFlags(flags, "tuttiCommRevoke");
    const auto communicator = lookUp(comm, "tuttiCommRevoke");
    if (!communicator) return;
    const std::string text = fmt::format("{} revoked the communicator", communicator->team().rankName(comm->rank));
    communicator->team().stop(control::Stop::kRevoke, Error(ErrorCode::kRemote, text));
  });
}

tuttiResult_t tuttiCommDump(tuttiComm_t comm, const char* path) {
  const char* name = "tuttiCommDump";
  return guarded(comm, [&] {
    checkPointer(path, name, "path");
    const auto communicator = lookUp(comm, name);
    if (!communicator) invalid(name, fmt::format("comm (rank {}) is gone", comm->rank));
    comm::writeDump(communicator->executor(), path, name);
  });
}

tuttiResult_t tuttiCommGetAsyncError(tuttiComm_t comm, tuttiResult_t* result) {
  const char* name = "tuttiCommGetAsyncError";
  return guarded(comm, [&] {
    checkHandle(comm, name);
    checkPointer(result, name, "result");
    const uint32_t now = comm->state.load(std::memory_order_acquire);
    refuseGone(*comm, name, now);
    // Before the lock, so that it goes after it: it may be the last.
    const auto communicator = now & kJoining ? nullptr : comm->stopper.lock();
    std::lock_guard lock(comm->errorMutex);
    *result = now & kJoining ? tuttiInProgress : comm->asyncError;
    if (*result != tuttiSuccess || !communicator) return;
    if (communicator->team().broken()) {
      const Error error = communicator->team().failure("no call");
      *result = comm->asyncError = static_cast<tuttiResult_t>(error.code());
      comm->lastError = error.what();
      processError.set(error.what());
      communicator->leaveRecord(error);  // whoever knows may destroy it next
    } else if (comm->finalizing.load(std::memory_order_relaxed)) {
      const bool done = communicator->executor().idle();
      if (done) comm->finalizing.store(false, std::memory_order_relaxed);
      *result = done ? tuttiSuccess : tuttiInProgress;
    }
  });
}

tuttiResult_t tuttiCommIdle(tuttiComm_t comm, int* idle) {
  const char* name = "tuttiCommIdle";
  return guarded(comm, [&] {
    checkHandle(comm, name);
    checkPointer(idle, name, "idle");
    const uint32_t now = comm->state.load(std::memory_order_acquire);
    refuseGone(*comm, name, now);
    const auto communicator = now & kJoining ? nullptr : comm->stopper.lock();
    *idle = !communicator || communicator->executor().idle();
  });
}

tuttiResult_t tuttiCommCount(tuttiComm_t comm, int* count) {
  return guarded(comm, [&] {
    CallGuard visit(comm, "tuttiCommCount");
    checkPointer(count, "tuttiCommCount", "count");
    *count = comm->size;
  });
}

tuttiResult_t tuttiCommUserRank(tuttiComm_t comm, int* rank) {
  return guarded(comm, [&] {
    CallGuard visit(comm, "tuttiCommUserRank");
    checkPointer(rank, "tuttiCommUserRank", "rank");
    *rank = comm->rank;
  });
}

tuttiResult_t tuttiCommDevice(tuttiComm_t comm, int* device) {
  return guarded(comm, [&] {
    CallGuard visit(comm, "tuttiCommDevice");
    checkPointer(device, "tuttiCommDevice", "device");
    *device = visit->team().config().device;
  });
}

tuttiResult_t tuttiCommGetStats(tuttiComm_t comm, tuttiCommStats_t* stats) {
  const char* name = "tuttiCommGetStats";
  return guarded(comm, [&] {
    CallGuard visit(comm, name);
    checkPointer(stats, name, "stats");
    if (stats->size < sizeof(size_t) || stats->size > sizeof(tuttiCommStats_t))
      invalid(name, fmt::format("stats->size is {}; set it to sizeof(tuttiCommStats_t)", stats->size));
    const comm::Stats now = visit->executor().stats();
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

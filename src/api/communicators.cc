// Communicators: made, split, asked, ended.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "api/check.h"
#include "api/configuration.h"
#include "api/guard.h"
#include "api/making.h"
#include "api/sized.h"
#include "api/submit.h"
#include "api/texts.h"
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

void encodeId(const control::UniqueId& id, tuttiUniqueId* into) {
  const auto raw = control::encode(id);
  std::memcpy(into->internal, raw.data(), raw.size());
}

// The frame of the calls that make communicators.
template <class Body>
tuttiResult_t making(tuttiComm_t parent, Body&& body) noexcept {
  tuttiResult_t result = tuttiSuccess;
  const tuttiResult_t failed = guarded(parent, [&] { result = spoiling(body); });
  return failed == tuttiSuccess ? result : failed;
}

void tellSettings(const comm::Config& settings, int rank) {
  tellOverridden(settings, rank);
  if (rank != 0) return;
  settings::warnOfStrangeSettings();
  settings::tellForeignNames();
}

void checkDevices(const int* devices, int ranks, const char* call) {
  for (int r = 0; devices && r < ranks; ++r)
    if (devices[r] < -1)
      invalid(call, fmt::format("devices[{}] is {}: -1 for host memory, or a GPU's number", r, devices[r]));
}

// The defaults: those who encrypt hear only who does so as well.
comm::Config toCallWith() {
  comm::Config config;
  try {
    config.encrypt = settings::isOn("TUTTI_ENCRYPT");
  } catch (const Error&) {  // of which there may be more than one
  }
  return config;
}

// Of what its environment says and no rank can have, a rank knows before it calls anybody; the others need not wait for
// it. (Wrong arguments are for the caller to mend, who may come again with the same id.) `tell` begins to join with
// what it is given, and so says what is lacking.
template <class Tell>
comm::Config fromEnvironmentOrTell(Tell&& tell) {
  try {
    return comm::Config::fromEnvironment();
  } catch (const Error& wrong) {
    try {
      tell(toCallWith(), comm::Self::lacking({wrong.code(), wrong.what()}));
    } catch (const std::exception&) {  // the same again, or nobody was reached
    }
    throw;
  }
}

tuttiResult_t initRank(tuttiComm_t* comm, int ranks, const tuttiUniqueId& id, int rank, const tuttiConfig_t* config,
                       const char* name) {
  return making(nullptr, [&] {
    checkPointer(comm, name, "comm");
    checkRanks(ranks, rank, name);
    const auto where = decodeId(id);
    const auto secret = control::readSecret();
    const auto given = fromEnvironmentOrTell([&](const comm::Config& standard, const comm::Self& lacking) {
      if (ranks == 1) return;
      Communicator::join(control::withSecret(where, secret, rank), rank, ranks, standard, lacking, {}, {});
    });
    const auto settings = resolve(config, given, name);
    const auto self = comm::Self::find(settings);
    tellSettings(settings, rank);
    const auto join = [=](const auto& cancelled, const auto& begun) {
      return control::orTellRootHere(where.job, rank, ranks, [&] {
        const auto whole = control::withSecret(where, secret, rank);
        return Communicator::join(whole, rank, ranks, settings, self, cancelled, begun);
      });
    };
    return make(comm, {name, rank, ranks, settings.nonBlocking, join});
  });
}

// A rank that is of no communicator yet.
tuttiResult_t joinGrowing(tuttiComm_t* child, int ranks, const tuttiUniqueId* id, int rank, const tuttiConfig_t* config,
                          const char* name) {
  const tuttiResult_t wrong = making(nullptr, [&] {
    checkPointer(id, name, "id");
    if (rank == -1) invalid(name, "rank is -1, which a rank of comm gives, but comm is NULL");
    return tuttiSuccess;
  });
  return wrong == tuttiSuccess ? initRank(child, ranks, *id, rank, config, name) : wrong;
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

// An argument of the call, which TUTTI_DEVICE has no say in: neither here nor in what is made of this rank later.
void setDevice(comm::Config& config, int device) {
  config.device = device;
  config.variables.erase("TUTTI_DEVICE");
  config.overridden.erase("device");
}

struct Rank {
  comm::Config settings;
  comm::Self self;
};

// What each brings. Throws what one of them lacks, before the others hear of it: that is the failure to tell.
std::vector<Rank> ranksOfAll(int ranks, const int* devices, comm::Config settings) {
  std::vector<Rank> all;
  for (int r = 0; r < ranks; ++r) {
    const bool moves = devices && devices[r] != settings.device;
    if (devices) setDevice(settings, devices[r]);
    if (r == 0) tellSettings(settings, 0);
    all.push_back({settings, r == 0 || moves ? comm::Self::find(settings) : all.back().self});
    all.back().self.check();
  }
  return all;
}

// Where all meet. The first to join opens it, and whoever is the last to have to do with it closes it, come what may.
class RootHere {
 public:
  explicit RootHere(const Rank& first) : network_(first.self.network), timeout_(first.settings.joinTimeout) {}
  ~RootHere() {
    if (id_) control::closeRootHere(id_->job);
  }
  RootHere(const RootHere&) = delete;
  RootHere& operator=(const RootHere&) = delete;
  control::UniqueId id() {
    std::lock_guard lock(mutex_);
    if (!id_) id_ = control::openRootHere(network_, Deadline::in(timeout_));
    return *id_;
  }

 private:
  const Network network_;
  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;  // guards what follows
  std::optional<control::UniqueId> id_;
};

tuttiResult_t initAll(tuttiComm_t* comms, int ranks, const int* devices, const tuttiConfig_t* config,
                      const char* name) {
  return making(nullptr, [&] {
    checkPointer(comms, name, "comms");
    checkRanks(ranks, 0, name);
    checkDevices(devices, ranks, name);
    const auto all = ranksOfAll(ranks, devices, resolve(config, comm::Config::fromEnvironment(), name));
    const auto root = std::make_shared<RootHere>(all[0]);
    const auto siblings = std::make_shared<Siblings>();
    std::vector<Making> makings;
    for (int r = 0; r < ranks; ++r) {
      const auto join = [=, own = all[static_cast<size_t>(r)]](const auto& cancelled, const auto& begun) {
        return Communicator::join(root->id(), r, ranks, own.settings, own.self, cancelled, begun);
      };
      makings.push_back({name, r, ranks, all[0].settings.nonBlocking, join});
      makings.back().siblings = siblings;
    }
    return makeTogether(comms, std::move(makings));
  });
}

comm::Config resolveForChild(const tuttiConfig_t* config, const comm::Team& parent, const char* call) {
  comm::Config settings = resolve(config, parent.config(), call);
  tellOverridden(settings, parent.rank(), &parent.config());
  return settings;
}

// As one of the parent's: what it will be is not known yet.
Making makingOfChild(const char* name, const comm::Team& parent, const comm::Config& settings, Making::Join join) {
  return {name, parent.rank(), parent.size(), settings.nonBlocking, std::move(join)};
}

Making splitOf(Communicator& parent, int color, int key, const tuttiConfig_t* config, const char* name) {
  static_assert(TUTTI_SPLIT_HOST == comm::kSplitByHost);
  const bool joins = color >= 0 || color == TUTTI_SPLIT_HOST;
  if (!joins && color != TUTTI_SPLIT_NOCOLOR)
    invalid(name, fmt::format("color is {}: 0 or more, TUTTI_SPLIT_NOCOLOR or TUTTI_SPLIT_HOST", color));
  const auto settings = resolveForChild(config, parent.team(), name);
  const auto self = joins ? comm::Self::find(settings) : comm::Self{};
  const auto join = [=, &parent](const auto& cancelled, const auto& begun) {
    return parent.split(color, key, settings, self, cancelled, begun);
  };
  Making split = makingOfChild(name, parent.team(), settings, join);
  split.isAwaited = true;
  split.makesHandle = joins;
  return split;
}

Making duplicateOf(Communicator& parent, const tuttiConfig_t* config, const char* name) {
  const auto settings = resolveForChild(config, parent.team(), name);
  const auto self = comm::Self::find(settings);
  Making duplicate =
      makingOfChild(name, parent.team(), settings, [=, &parent](const auto& cancelled, const auto& begun) {
        return parent.duplicate(settings, self, cancelled, begun);
      });
  duplicate.isAwaited = true;
  return duplicate;
}

struct GrowthArguments {
  int ranks;
  const tuttiUniqueId* id;
  int rank;
  const tuttiComm_t* child;
  const tuttiConfig_t* config;
};

// What a rank of the communicator brings. Of what it lacks the others hear when they meet.
struct GrowthPart {
  comm::Growth growth;
  comm::Config settings;
  comm::Self self;
};

void readGrowth(GrowthPart& part, const comm::Team& team, const GrowthArguments& arguments, const char* name) try {
  part.growth.ranks = arguments.ranks;
  if (arguments.id) part.growth.id = decodeId(*arguments.id);
  part.growth.secret = control::readSecret();
  checkPointer(arguments.child, name, "child");
  if (arguments.rank != -1)
    invalid(name, fmt::format("rank is {}: a rank of comm keeps its number, and gives -1", arguments.rank));
  part.settings = resolveForChild(arguments.config, team, name);
  part.self = comm::Self::find(part.settings);
  part.growth.lack = part.self.lack;
} catch (const std::exception& thrown) {
  const Error error = errorOf(thrown);
  part.growth.lack = control::Refusal{error.code(), error.what()};
}

[[noreturn]] void failAlone(comm::Team& team, const control::Refusal& lack) {
  const Error error(lack.code, lack.text);
  tellTheOthers(team, error, false);
  throw error;
}

// It may not wait for the others here in a group: they may be ranks of this thread.
Making growthOf(Communicator& parent, const GrowthArguments& arguments, const char* name) {
  GrowthPart part{{}, parent.team().config(), {}};
  readGrowth(part, parent.team(), arguments, name);
  if (part.growth.lack && inGroup()) failAlone(parent.team(), *part.growth.lack);
  if (part.growth.lack) parent.grow(part.growth, part.settings, part.self, {}, {});
  const auto join = [part, &parent](const auto& cancelled, const auto& begun) {
    return parent.grow(part.growth, part.settings, part.self, cancelled, begun);
  };
  Making growing = {name, parent.team().rank(), arguments.ranks, part.settings.nonBlocking, join};
  growing.isAwaited = true;
  return growing;
}

// Ranks of the communicator without its own, each once or more.
std::vector<int> leftOutOf(const comm::Team& team, const int* ranks, int count, const char* name) {
  if (count < 0) invalid(name, fmt::format("leftOutCount is {}: it cannot be negative", count));
  if (count > 0) checkPointer(ranks, name, "leftOut");
  for (int i = 0; i < count; ++i) {
    checkRank(ranks[i], team.size(), name, fmt::format("leftOut[{}]", i).c_str());
    if (ranks[i] == team.rank())
      invalid(name, fmt::format("leftOut[{}] is {}, this rank itself: who is left out does not call", i, ranks[i]));
  }
  return {ranks, ranks + count};
}

Making shrinkOf(const Occupation& parent, std::vector<int> leftOut, const tuttiConfig_t* config, const char* name) {
  const auto settings = resolveForChild(config, parent->team(), name);
  const auto self = comm::Self::find(settings);
  const auto join = [=, handle = parent.handle(), &comm = *parent, leftOut = std::move(leftOut)](const auto& cancelled,
                                                                                                 const auto&) {
    const auto givenUp = [&] { return isGivenUp(*handle) || (cancelled && cancelled()); };
    return comm.shrink(settings, self, leftOut, givenUp);
  };
  return makingOfChild(name, parent->team(), settings, join);
}

// For calls that any thread may make, whoever is inside.
std::shared_ptr<comm::Communicator> present(tuttiComm_t comm, const char* call) {
  auto communicator = lookUp(comm, call);
  if (!communicator) invalid(call, fmt::format("comm (rank {}) is gone", comm->rank));
  return communicator;
}

}  // namespace

extern "C" {

tuttiResult_t tuttiGetUniqueId(tuttiUniqueId* id) {
  return guarded(nullptr, [&] {
    checkPointer(id, "tuttiGetUniqueId", "id");
    const auto timeout = comm::Config::fromEnvironment().joinTimeout;
    settings::warnOfStrangeSettings();
    encodeId(control::openRoot(Network::fromEnvironment(), Deadline::in(timeout)), id);
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
  return making(nullptr, [&] {
    checkPointer(comm, name, "comm");
    const auto given = fromEnvironmentOrTell([](const comm::Config& standard, const comm::Self& lacking) {
      const control::LaunchInfo launch = control::readLaunch();
      if (launch.size == 1) return;
      const auto id = meetingPlaceFor(launch, standard, lacking, {});
      Communicator::join(id, launch.rank, launch.size, standard, lacking, {}, {});
    });
    const auto settings = resolve(config, given, name);
    const control::LaunchInfo launch = launchOrHints();
    const auto self = comm::Self::find(settings);
    tellSettings(settings, launch.rank);
    const auto join = [=](const auto& cancelled, const auto& begun) {
      const auto id = meetingPlaceFor(launch, settings, self, cancelled);
      return Communicator::join(id, launch.rank, launch.size, settings, self, cancelled, begun);
    };
    return make(comm, {name, launch.rank, launch.size, settings.nonBlocking, join});
  });
}

tuttiResult_t tuttiCommInitAll(tuttiComm_t* comms, int ranks, const int* devices) {
  return initAll(comms, ranks, devices, nullptr, "tuttiCommInitAll");
}

tuttiResult_t tuttiCommInitAllConfig(tuttiComm_t* comms, int ranks, const int* devices, const tuttiConfig_t* config) {
  return initAll(comms, ranks, devices, config, "tuttiCommInitAllConfig");
}

tuttiResult_t tuttiCommSplit(tuttiComm_t comm, int color, int key, tuttiComm_t* child, const tuttiConfig_t* config) {
  const char* name = "tuttiCommSplit";
  return making(comm, [&] {
    Occupation parent(comm, name);
    Making split = orTellTheOthers(parent->team(), [&] {
      checkPointer(child, name, "child");
      return splitOf(*parent, color, key, config, name);
    });
    split.parent.emplace(std::move(parent));
    return make(child, std::move(split));
  });
}

tuttiResult_t tuttiCommShrink(tuttiComm_t comm, const int* leftOut, int leftOutCount, tuttiComm_t* child,
                              const tuttiConfig_t* config, unsigned int flags) {
  const char* name = "tuttiCommShrink";
  return making(comm, [&] {
    Occupation parent(comm, name);
    checkFlags(flags, name);
    checkPointer(child, name, "child");
    Making shrink = shrinkOf(parent, leftOutOf(parent->team(), leftOut, leftOutCount, name), config, name);
    shrink.parent.emplace(std::move(parent));
    return make(child, std::move(shrink));
  });
}

tuttiResult_t tuttiCommDuplicate(tuttiComm_t comm, tuttiComm_t* child, const tuttiConfig_t* config) {
  const char* name = "tuttiCommDuplicate";
  return making(comm, [&] {
    Occupation parent(comm, name);
    Making duplicate = orTellTheOthers(parent->team(), [&] {
      checkPointer(child, name, "child");
      return duplicateOf(*parent, config, name);
    });
    duplicate.parent.emplace(std::move(parent));
    return make(child, std::move(duplicate));
  });
}

tuttiResult_t tuttiCommGetUniqueId(tuttiComm_t comm, tuttiUniqueId* id) {
  const char* name = "tuttiCommGetUniqueId";
  return guarded(comm, [&] {
    CallGuard visit(comm, name);
    checkPointer(id, name, "id");
    if (visit->team().broken()) throw visit->team().failure(name);
    encodeId(visit->openRootToGrow(), id);
  });
}

tuttiResult_t tuttiCommGrow(tuttiComm_t comm, int ranks, const tuttiUniqueId* id, int rank, tuttiComm_t* child,
                            const tuttiConfig_t* config) {
  const char* name = "tuttiCommGrow";
  if (comm == nullptr) return joinGrowing(child, ranks, id, rank, config, name);
  return making(comm, [&] {
    Occupation parent(comm, name);
    Making growing = growthOf(*parent, {ranks, id, rank, child, config}, name);
    growing.parent.emplace(std::move(parent));
    return make(child, std::move(growing));
  });
}

tuttiResult_t tuttiCommFinalize(tuttiComm_t comm) {
  if (comm == nullptr) return tuttiSuccess;
  bool done = true;
  const tuttiResult_t failed = guarded(comm, [&] {
    CallGuard visit(comm, "tuttiCommFinalize");
    if (!visit->team().config().nonBlocking) return visit->executor().waitUntilIdle();
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
    revokeHandle(comm, "tuttiCommRevoke");
  });
}

tuttiResult_t tuttiCommDump(tuttiComm_t comm, const char* path) {
  const char* name = "tuttiCommDump";
  return guarded(comm, [&] {
    checkPointer(path, name, "path");
    comm::writeDump(present(comm, name)->executor(), path, name);
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
    *result = now & (kJoining | kSplittingOn) ? tuttiInProgress : comm->asyncError;
    if (*result != tuttiSuccess || !communicator) return;
    if (communicator->team().broken()) {
      const Error error = communicator->team().failure();
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
    const auto communicator = present(comm, name);
    checkSized(stats, name, "stats", "tuttiCommStats_t");
    const comm::Stats now = communicator->executor().stats();
    tuttiCommStats_t full = {};
    full.memoryBytes = now.memoryBytes;
    full.connectedPeers = now.connectedPeers;
    full.operations = now.operations;
    full.directSlots = now.directSlots;
    const comm::Recorder::Totals totals = communicator->team().recorder().totals();
    full.bytes = totals.bytes;
    full.nanoseconds = totals.nanoseconds;
    copyText(full.lastAlgorithm, now.lastAlgorithm);
    copyText(full.lastTransports, now.lastTransports);
    fillSized(stats, full);
  });
}

tuttiResult_t tuttiCommGetWaits(tuttiComm_t comm, uint64_t* nanoseconds, int ranks) {
  const char* name = "tuttiCommGetWaits";
  return guarded(comm, [&] {
    const auto communicator = present(comm, name);
    checkPointer(nanoseconds, name, "nanoseconds");
    const comm::Team& team = communicator->team();
    if (ranks != team.size()) invalid(name, fmt::format("ranks is {}: the communicator has {}", ranks, team.size()));
    for (int r = 0; r < ranks; ++r) nanoseconds[r] = team.recorder().waitedNs(r);
  });
}

}  // extern "C"

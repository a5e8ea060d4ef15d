#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "api/check.h"
#include "api/guard.h"
#include "api/making.h"
#include "api/submit.h"
#include "api/texts.h"
#include "process/fork.h"
#include "team/executor.h"

using namespace tutti;

namespace tutti::api {
namespace {

struct Group {
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    giveUp(errorOrOutOfMemory(
        [] { return Error(ErrorCode::kInvalidUsage, "the group in which it was called has not come to its end"); }));
  }
  // What was collected and not taken will not come. Once: another thread may start it anew then.
  void giveUp(const Error& why) noexcept {
    for (const comm::PendingCall& one : calls)
      if (one.operation) one.operation->giveUp(partOf(one.call), why);
    calls.clear();
  }
  std::vector<comm::PendingCall> calls;
  std::vector<tuttiComm_t> handles;  // each once
  Makers makers;
  std::optional<Error> spoiled;
};

// A thread may make groups to its very end, as late as the destructors of static objects run: so this has none of its
// own, and what a thread leaves open is dropped by another object.
struct Open {
  int depth = 0;
  bool lacksMemory = false;
  Group* group = nullptr;  // of its own; null: nothing is in it yet
};
thread_local constinit Open current;

// Threads that have one open, or ended so: as long as there is none, nobody has to ask for what is its own thread's,
// which takes longer than all else that a call asks.
constinit std::atomic<int> openThreads{0};

struct GroupDropper {
  ~GroupDropper() { delete std::exchange(current, {}).group; }
  bool used = false;  // whoever touches it has it destroyed
};
thread_local GroupDropper groupDropper;

Group& openGroup() {
  if (current.group == nullptr) {
    current.group = new Group;
    groupDropper.used = true;
  }
  return *current.group;
}

std::unique_ptr<Group> closeGroup() noexcept { return std::unique_ptr<Group>(std::exchange(current, {}).group); }

bool isToItself(const comm::Executor& executor, const comm::Call& call) {
  return call.collective == Collective::kSendRecv && call.root == executor.team().rank();
}

// A message to oneself outside of a group would wait for a call that its caller never comes to make; where it fits into
// a slot it would do so by luck.
void refuseLonely(const comm::Executor& executor, const comm::Call& call, const char* name) {
  if (!isToItself(executor, call) || inGroup()) return;
  throw Error(ErrorCode::kInvalidUsage,
              fmt::format("{}: peer is this rank ({}) itself: a send to oneself and its receive belong in one group "
                          "(tuttiGroupStart, tuttiGroupEnd)",
                          name, executor.team().rank()));
}

void refuseLonely(const Group& ended) {
  std::map<comm::Executor*, int> open;  // sends to oneself, less the receives of them
  for (const comm::PendingCall& one : ended.calls)
    if (isToItself(*one.executor, one.call) && !one.call.onlyReadies) open[one.executor] += one.call.sends ? 1 : -1;
  for (const auto& [executor, count] : open)
    if (count != 0)
      throw Error(
          ErrorCode::kInvalidUsage,
          fmt::format("tuttiGroupEnd: rank {} {} itself {} message{} more than it {} in this group: both belong "
                      "in one",
                      executor->team().rank(), count > 0 ? "sends" : "receives from", std::abs(count),
                      std::abs(count) == 1 ? "" : "s", count > 0 ? "receives" : "sends"));
}

// What is made of a communicator, and operations on it, would wait for each other on some rank.
void refuseMixed(const Group& ended) {
  for (const auto& maker : ended.makers) {
    const auto& parent = maker->making().parent;
    if (parent && std::ranges::find(ended.handles, parent->handle()) != ended.handles.end())
      throw Error(
          ErrorCode::kInvalidUsage,
          fmt::format("tuttiGroupEnd: a {} and operations on the same communicator (rank {}) are in this group: "
                      "put them into groups of their own",
                      maker->making().call, parent->handle()->rank));
  }
}

void check(const Group& ended, bool lacksMemory) {
  if (ended.spoiled) throw *ended.spoiled;
  if (lacksMemory) throw std::bad_alloc();
  for (const auto& maker : ended.makers) checkHandle(maker->pending(), "tuttiGroupEnd");
  refuseMixed(ended);
  refuseLonely(ended);
}

void giveUpMakers(const Group& ended, const std::exception& why) noexcept {
  const Error error = errorOf(why);
  const Error said =
      errorOrOutOfMemory([&] { return Error(error.code(), fmt::format("the group made nothing: {}", error.what())); });
  for (const auto& maker : ended.makers) maker->giveUp(said);
}

void runCalls(Group& ended) {
  if (ended.calls.empty()) return;
  std::deque<CallGuard> visits;
  for (tuttiComm_t handle : ended.handles) visits.emplace_back(handle, "tuttiGroupEnd");
  try {
    comm::launchGroup(ended.calls);
  } catch (const std::exception& thrown) {
    ended.giveUp(errorOf(thrown));
    throw;
  }
  ended.calls.clear();  // as long as nobody can start them anew
}

void recordInAll(const std::vector<tuttiComm_t>& handles, const Error& error) noexcept {
  for (tuttiComm_t handle : handles) recordIn(handle, static_cast<tuttiResult_t>(error.code()), error.what());
}

// First what is made, and then the calls, whatever became of that: others wait for them. True: something is still made.
bool runGroup(Group& ended, bool lacksMemory) {
  try {
    check(ended, lacksMemory);
  } catch (const std::exception& why) {
    giveUpMakers(ended, why);
    ended.giveUp(errorOf(why));
    throw;
  }
  const auto failure = makeAll(ended.makers);
  try {
    runCalls(ended);
  } catch (const std::exception& thrown) {
    ended.giveUp(errorOf(thrown));
    if (!failure) throw;
    recordInAll(ended.handles, errorOf(thrown));
  }
  if (failure) ended.handles.clear();  // it is none of theirs
  if (failure)
    throw Error(failure->error.code(),
                fmt::format("tuttiGroupEnd: {} ({}): {}", failure->call, failure->who, failure->error.what()));
  return std::ranges::any_of(ended.makers, [](const auto& maker) { return maker->making().nonBlocking; });
}

void note(Group& group, tuttiComm_t comm) {
  if (std::find(group.handles.begin(), group.handles.end(), comm) == group.handles.end()) group.handles.push_back(comm);
}

void addToGroup(tuttiComm_t comm, comm::PendingCall call) {
  Group& group = openGroup();
  note(group, comm);  // first: no call is in the group without it
  group.calls.push_back(std::move(call));
}

}  // namespace

void deferMakers(const Makers& makers) {
  Makers& all = openGroup().makers;
  all.insert(all.end(), makers.begin(), makers.end());
}

// Relaxed: what a thread has opened itself it sees.
bool inGroup() noexcept { return openThreads.load(std::memory_order_relaxed) != 0 && current.depth > 0; }

bool isCollected(const comm::Operation& operation) noexcept {
  if (current.group == nullptr) return false;
  return std::ranges::any_of(current.group->calls,
                             [&](const comm::PendingCall& one) { return one.operation.get() == &operation; });
}

void spoilGroup(const Error& error) noexcept {
  if (!inGroup()) return;
  try {
    if (Group& group = openGroup(); !group.spoiled) group.spoiled = error;
  } catch (const std::bad_alloc&) {
    current.lacksMemory = true;
  }
}

void submit(CallGuard& visit, comm::Call&& call, tuttiStream_t stream, tuttiComm_t comm, const char* name) {
  comm::Executor& executor = visit->executor();
  refuseLonely(executor, call, name);
  if (stream == nullptr && !executor.traits().takesCudaStreams && !inGroup()) return executor.run(call);
  comm::CallStream on = checkStream(executor, stream, name);
  if (inGroup()) return addToGroup(comm, {visit->shared_from_this(), &executor, std::move(call), std::move(on)});
  if (on) return executor.queue({visit->shared_from_this(), &executor, std::move(call), std::move(on)});
  executor.run(call);
}

void submitPlain(CallGuard& visit, comm::Call&& call, const Asked& asked, tuttiComm_t comm, const char* name) {
  comm::Executor& executor = visit->executor();
  if (executor.traits().takesCudaStreams || inGroup()) return submit(visit, std::move(call), nullptr, comm, name);
  AskedBefore::One& one = comm->askedBefore.placeOf(asked);
  one.holds = false;
  one.asked = asked;
  one.call = std::move(call);
  one.readied = {};
  one.call.readied = &one.readied;
  one.call.isKept = true;
  executor.run(one.call);
  one.holds = true;
}

namespace {

// What it waits for may fail, and its thread be cancelled.
tuttiResult_t goOn(tuttiComm_t comm, AskedBefore::One& one) noexcept {
  return guarded(comm, [&] { comm->communicator->executor().goOn(one.call); });
}

}  // namespace

Before madeAgain(tuttiComm_t comm, const Asked& asked) noexcept {
  if (!isCommunicator(comm) || comm->generation != fork::generation() || inGroup() || !enterIdle(comm)) return {};
  AskedBefore::One& one = comm->askedBefore.placeOf(asked);
  const comm::Again how =
      one.holds && one.asked == asked ? comm->communicator->executor().again(one.call) : comm::Again::kNot;
  if (how == comm::Again::kNot) [[unlikely]]
    return Before::whoIsInside();
  tuttiResult_t result = tuttiSuccess;
  if (how != comm::Again::kDone) {
    result = goOn(comm, one);
    one.holds = result == tuttiSuccess;
  }
  leaveIdle(comm);
  return Before(result);
}

bool isQueued(const comm::Executor& executor, const comm::CallStream& stream) noexcept {
  return inGroup() || stream || !executor.launcher().runs();
}

void runHere(comm::Executor& executor, const comm::Call& call, const char* name) {
  refuseLonely(executor, call, name);
  executor.run(call);
}

namespace {

void sendOff(tuttiComm_t comm, comm::PendingCall pending) {
  comm::Executor& executor = *pending.executor;
  if (inGroup()) return addToGroup(comm, std::move(pending));
  if (isQueued(executor, pending.stream)) return executor.queue(std::move(pending));
  const auto operation = std::move(pending.operation);
  const auto part = partOf(pending.call);
  executor.run(pending.call);
  operation->end(part);
}

}  // namespace

void refuseRunning(std::string_view what, const char* name) {
  throw Error(ErrorCode::kInvalidUsage,
              fmt::format("{}: request is of {}, which still runs: wait for it (tuttiRequestWait) before it is started "
                          "again",
                          name, what));
}

void submitOperation(tuttiComm_t comm, comm::PendingCall pending, const char* name) {
  if (!pending.call.onlyReadies) refuseLonely(*pending.executor, pending.call, name);
  const auto operation = pending.operation;
  const auto part = partOf(pending.call);
  if (!operation->begin(part)) refuseRunning(nameOf(pending.call.collective), name);
  try {
    sendOff(comm, std::move(pending));
  } catch (const std::exception& thrown) {
    operation->giveUp(part, errorOf(thrown));
    throw;
  }
}

}  // namespace tutti::api

extern "C" {

tuttiResult_t tuttiGroupStart(void) {
  if (api::current.depth++ == 0) api::openThreads.fetch_add(1, std::memory_order_relaxed);
  return tuttiSuccess;
}

tuttiResult_t tuttiGroupEnd(void) {
  std::unique_ptr<api::Group> ended;
  bool goesOn = false;
  const tuttiResult_t result = api::guarded(nullptr, [&] {
    if (api::current.depth == 0)
      throw Error(ErrorCode::kInvalidUsage, "tuttiGroupEnd: no group is open on this thread (tuttiGroupStart)");
    if (--api::current.depth > 0) return;
    api::openThreads.fetch_sub(1, std::memory_order_relaxed);
    const bool lacksMemory = api::current.lacksMemory;
    ended = api::closeGroup();
    if (lacksMemory && !ended) throw std::bad_alloc();
    if (ended) goesOn = api::runGroup(*ended, lacksMemory);
  });
  if (result == tuttiSuccess) return goesOn ? tuttiInProgress : result;
  if (!ended) return result;
  for (tuttiComm_t handle : ended->handles) api::recordIn(handle, result, api::threadError.get());
  return result;
}

}  // extern "C"

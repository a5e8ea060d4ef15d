// Requests: calls with a configuration of their own, and the handles that these give.
#include "api/request.h"

#include <fmt/format.h>

#include <utility>

#include "api/check.h"
#include "api/configuration.h"
#include "api/guard.h"
#include "api/handle_pool.h"
#include "api/submit.h"
#include "api/texts.h"
#include "process/fork.h"
#include "process/log.h"

namespace tutti::api {
namespace {

constexpr auto kBothWays = std::memory_order_acq_rel;

using Communicators = std::shared_ptr<comm::Communicator>;

tuttiRequest_t newRequest(tuttiComm_t comm, const Communicators& communicator,
                          std::shared_ptr<comm::Operation> operation) {
  const tuttiRequest_t shell = poolOf<tuttiRequest>.take();
  shell->generation = fork::generation();
  shell->comm = comm;
  shell->communicator = communicator;
  shell->operation = std::move(operation);
  return shell;
}

// By the last who has it: the handle is a freed request's from now on.
void letGo(tuttiRequest& request) noexcept {
  std::shared_ptr<comm::Operation> operation;
  {
    std::lock_guard lock(request.mutex);
    operation.swap(request.operation);
    request.communicator.reset();
  }
  request.persistent.reset();
  poolOf<tuttiRequest>.putBack(&request);
}

bool isRequest(tuttiRequest_t request) noexcept { return poolOf<tuttiRequest>.holds(request); }

void checkRequest(tuttiRequest_t request, const char* call) {
  if (request == nullptr) invalid(call, "request is NULL");
  if (!isRequest(request)) invalid(call, "request is not one that a call has given");
  if (request->generation != fork::generation())
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}: request belongs to the process that this one was forked from", call));
}

[[noreturn]] void refuseFreed(const char* call) { invalid(call, "request was freed"); }

std::shared_ptr<comm::Operation> operationOf(tuttiRequest_t request, const char* call) {
  checkRequest(request, call);
  std::lock_guard lock(request->mutex);
  if (!request->operation || (request->state.load(std::memory_order_acquire) & kFreed)) refuseFreed(call);
  return request->operation;
}

bool isSame(const Communicators& communicator, const std::weak_ptr<comm::Communicator>& other) noexcept {
  return !communicator.owner_before(other) && !other.owner_before(communicator);
}

[[noreturn]] void refuseRestart(const tuttiRequest& request, const char* call) {
  refuseRunning(request.persistent ? nameOf(request.persistent->call.collective) : "a single operation", call);
}

// Nobody but the caller could end the group in which it waits to run.
void refuseCollected(const comm::Operation& operation, const char* call) {
  if (isCollected(operation))
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}: request is of a call that runs at the end of the group which this thread has open: "
                            "end that group first (tuttiGroupEnd)",
                            call));
}

// Until no thread is in tuttiRequestStart: an operation without a stream ends there.
void awaitStart(tuttiRequest& request) noexcept {
  for (uint32_t state = request.state.load(std::memory_order_acquire); state & kStarting;
       state = request.state.load(std::memory_order_acquire)) {
    const bool told = state & kAwaited || request.state.compare_exchange_weak(state, state | kAwaited, kBothWays);
    if (told) request.state.wait(state | kAwaited, std::memory_order_acquire);
  }
}

// A thread's stay in tuttiRequestStart.
class Starting {
 public:
  Starting(tuttiRequest& request, const char* call) : request_(request) {
    // Acquire-release: pairs with the same operation in tuttiRequestFree; exactly one of the two sees the other's bit.
    const uint32_t before = request.state.fetch_or(kStarting, kBothWays);
    if (!(before & (kStarting | kFreed))) return;
    if (!(before & kStarting)) leave();
    if (before & kFreed) refuseFreed(call);
    refuseRestart(request, call);
  }
  ~Starting() {
    if (leave() & kFreed) letGo(request_);
  }
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;

 private:
  // What the state was; a thread may have begun to wait for this one, however short it was here.
  uint32_t leave() noexcept {
    const uint32_t before = request_.state.fetch_and(~(kStarting | kAwaited), kBothWays);
    if (before & kAwaited) request_.state.notify_all();
    return before;
  }

  tuttiRequest& request_;
};

// On the short path: whoever asks meanwhile sees kStarting, and the operation learns of a failure alone.
void startHere(tuttiRequest& request, comm::Executor& executor, const char* name) {
  comm::Operation& operation = *request.operation;
  if (!operation.renew()) refuseRestart(request, name);
  try {
    runHere(executor, request.persistent->call, name);
  } catch (const std::exception& thrown) {
    operation.end(comm::Operation::kRunning, errorOf(thrown));
    throw;
  }
}

void start(tuttiRequest& request, const char* name) {
  const Starting turn(request, name);
  if (!request.persistent)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}: request is of a single operation: only a call with TUTTI_CALL_PERSISTENT can be "
                            "started",
                            name));
  CallGuard visit(request.comm, name, CallGuard::kKnown);
  if (!isSame(visit.communicator(), request.communicator)) invalid(name, "the communicator of request was destroyed");
  const tuttiRequest::Persistent& what = *request.persistent;
  comm::Executor& executor = visit->executor();
  if (!isQueued(executor, what.stream)) return startHere(request, executor, name);
  submitOperation(request.comm, {visit.communicator(), &executor, what.call, what.stream, request.operation}, name);
}

// The text also for tuttiGetLastError of the communicator, while its handle is that.
tuttiResult_t recorded(tuttiRequest_t request, tuttiResult_t result) noexcept {
  if (result == tuttiSuccess || !isRequest(request) || request->generation != fork::generation()) return result;
  bool lives = false;
  {
    std::lock_guard lock(request->mutex);
    lives = !request->communicator.expired();
  }
  if (lives) recordIn(request->comm, result, threadError.get());
  return result;
}

void tellOnce(tuttiComm& comm, const CallOptions& options) {
  constexpr const char* kWhere = "overridden, in this call and all of this communicator";
  const std::string& lost = options.unreproducible;
  if (comm.rank == 0 && !lost.empty() && !std::exchange(comm.toldUnreproducible, true))
    log::warn("{}: {}: bits may differ with what is chosen", kWhere, lost);
  if (options.overridden.empty() || std::exchange(comm.toldOverridden, true)) return;
  log::info("{}: {}", kWhere, options.overridden);
}

}  // namespace

void submitConfigured(CallGuard& visit, comm::Call call, tuttiStream_t stream, tuttiComm_t comm, const char* name,
                      const tuttiCallConfig_t& config) {
  const CallOptions options = resolve(config, visit->team().config(), call.collective, name);
  tellOnce(*comm, options);
  call.wish = options.wish;
  call.tag = options.tag;
  call.timeout = options.timeout;
  if (options.request == nullptr) return submit(visit, std::move(call), stream, comm, name);
  comm::Executor& executor = visit->executor();
  comm::CallStream on = checkStream(executor, stream, name);
  const auto operation = executor.newOperation();
  const tuttiRequest_t made = newRequest(comm, visit.communicator(), operation);
  try {
    if (options.persistent) {
      call.readied = &operation->readied;
      made->persistent.emplace(call, on);
      call.onlyReadies = true;
    }
    submitOperation(comm, {visit.communicator(), &executor, std::move(call), std::move(on), operation}, name);
  } catch (...) {
    letGo(*made);
    throw;
  }
  *options.request = made;
}

}  // namespace tutti::api

using namespace tutti;
using namespace tutti::api;

extern "C" {

tuttiResult_t tuttiRequestTest(tuttiRequest_t request) {
  bool done = true;
  const tuttiResult_t result = guarded(nullptr, [&] {
    const auto operation = operationOf(request, "tuttiRequestTest");
    done = !(request->state.load(std::memory_order_acquire) & kStarting) && operation->done();
    if (done) operation->result();
  });
  return done ? recorded(request, result) : tuttiInProgress;
}

tuttiResult_t tuttiRequestWait(tuttiRequest_t request) {
  return recorded(request, guarded(nullptr, [&] {
                    const auto operation = operationOf(request, "tuttiRequestWait");
                    refuseCollected(*operation, "tuttiRequestWait");
                    awaitStart(*request);
                    operation->wait();
                    operation->result();
                  }));
}

tuttiResult_t tuttiRequestStart(tuttiRequest_t request) {
  const char* name = "tuttiRequestStart";
  return recorded(request, guarded(nullptr, [&] {
                    spoiling([&] {
                      checkRequest(request, name);
                      start(*request, name);
                    });
                  }));
}

tuttiResult_t tuttiRequestFree(tuttiRequest_t request) {
  return guarded(nullptr, [&] {
    checkRequest(request, "tuttiRequestFree");
    const uint32_t before = request->state.fetch_or(kFreed, kBothWays);
    if (before & kFreed) refuseFreed("tuttiRequestFree");
    if (!(before & kStarting)) letGo(*request);
  });
}

}  // extern "C"

#include "api/handle.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "api/handle_pool.h"
#include "process/fork.h"

namespace tutti::api {
namespace {

constexpr auto kBoth = std::memory_order_acq_rel;

tuttiComm_t newShell(int rank, int size) {
  const tuttiComm_t shell = poolOf<tuttiComm>.take();
  shell->rank = rank;
  shell->size = size;
  shell->generation = fork::generation();
  return shell;
}

// For an abort whose text there is no memory for: the others are told all the same, since it can not come again.
const Error& abortInShort = *new Error(ErrorCode::kRemote, "a rank called tuttiCommAbort");

Error abortBy(const comm::Team& team) noexcept {
  try {
    return Error(ErrorCode::kRemote, fmt::format("{} called tuttiCommAbort", team.rankName(team.rank())));
  } catch (const std::exception&) {
    return abortInShort;
  }
}

void stopAborted(tuttiComm& comm) noexcept {
  // A thread that is inside may leave, and let its reference go, at any moment; this one has its own.
  const auto communicator = comm.stopper.lock();
  if (communicator) communicator->team().stop(control::Stop::kAbort, abortBy(communicator->team()));
}

void leave(tuttiComm& comm) {
  // Acquire-release: pairs with the same operation in abortHandle; exactly one of the two sees the other's bit and
  // frees.
  const uint32_t before = comm.state.fetch_and(~kInside, kBoth);
  if (!(before & (kAborted | kGone))) return;
  comm.communicator.reset();
  poolOf<tuttiComm>.putBack(&comm);
}

[[noreturn]] void refuse(const tuttiComm& comm, const char* call, uint32_t state) {
  if (state & kJoining)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}: comm (rank {}) is still joining; wait until tuttiCommGetAsyncError gives tuttiSuccess",
                            call, comm.rank));
  if ((state & kInside) && !(state & kAborted))  // whoever aborts is inside for a moment
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}: another thread is using this communicator (rank {}); a communicator serves one thread "
                            "at a time",
                            call, comm.rank));
  const char* what = state & kGone ? "was destroyed" : state & kAborted ? "was aborted" : "could not join";
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: comm (rank {}) {}", call, comm.rank, what));
}

}  // namespace

tuttiComm_t makeHandle(std::shared_ptr<comm::Communicator> communicator) {
  const tuttiComm_t shell = newShell(communicator->team().rank(), communicator->team().size());
  shell->stopper = communicator;
  shell->communicator = std::move(communicator);
  return shell;
}

tuttiComm_t makePendingHandle(int rank, int size) {
  const tuttiComm_t shell = newShell(rank, size);
  shell->state.store(kInside | kJoining, std::memory_order_relaxed);
  return shell;
}

void completeHandle(tuttiComm_t comm, std::shared_ptr<comm::Communicator> communicator) noexcept {
  comm->stopper = communicator;
  comm->communicator = std::move(communicator);
  // Acquire-release: pairs with the operations of CallGuard and abortHandle; they see the communicator, this sees an
  // abort.
  const uint32_t before = comm->state.fetch_and(~kJoining, kBoth);
  if (before & kAborted) stopAborted(*comm);
  leave(*comm);
}

void failHandle(tuttiComm_t comm, const Error& error) noexcept {
  {
    std::lock_guard lock(comm->errorMutex);
    comm->asyncError = static_cast<tuttiResult_t>(error.code());
    setText(comm->lastError, error.what());
  }
  // In one step: an abort comes before it, and leaves the shell to this thread, or after it, and finds a stray.
  uint32_t before = comm->state.load(std::memory_order_relaxed);
  while (!comm->state.compare_exchange_weak(before, before & kAborted ? kStray | kAborted | kGone : kStray, kBoth)) {
  }
  if (before & kAborted) poolOf<tuttiComm>.putBack(comm);
}

void dropPending(tuttiComm_t comm) {
  comm->state.store(kGone, std::memory_order_release);
  poolOf<tuttiComm>.putBack(comm);
}

bool isCommunicator(tuttiComm_t comm) noexcept {
  // Shells are never freed: what was one once needs no lock to be known again.
  thread_local constinit std::array<tuttiComm_t, 8> known{};
  tuttiComm_t& last = known[reinterpret_cast<uintptr_t>(comm) / sizeof(tuttiComm) % known.size()];
  if (comm == nullptr || comm == last) return comm != nullptr;
  if (!poolOf<tuttiComm>.holds(comm)) return false;
  last = comm;
  return true;
}

void checkHandle(tuttiComm_t comm, const char* call) {
  if (comm == nullptr) throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: comm is NULL", call));
  if (!isCommunicator(comm))
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: comm is not a communicator", call));
  if (comm->generation != fork::generation())
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}: comm (rank {}) belongs to the process that this one was forked from; a child made by "
                            "fork cannot use it. Make a communicator after the fork, or start the child with exec",
                            call, comm->rank));
}

void refuseGone(const tuttiComm& comm, const char* call, uint32_t state) {
  if ((state & kGone) && !(state & kAborted)) refuse(comm, call, kGone);
}

CallGuard::CallGuard(tuttiComm_t comm, const char* call) : CallGuard((checkHandle(comm, call), comm), call, kKnown) {}

CallGuard::CallGuard(tuttiComm_t comm, const char* call, Known) : comm_(comm) {
  const uint32_t before = comm->state.fetch_or(kInside, kBoth);
  if (before & kInside) refuse(*comm, call, before);
  if (before & (kAborted | kGone | kStray)) {
    comm->state.fetch_and(~kInside, kBoth);
    refuse(*comm, call, before);
  }
}

CallGuard::~CallGuard() { leave(*comm_); }

std::shared_ptr<comm::Communicator> lookUp(tuttiComm_t comm, const char* call) {
  checkHandle(comm, call);
  const uint32_t state = comm->state.load(std::memory_order_acquire);
  if (state & kJoining) refuse(*comm, call, state);
  refuseGone(*comm, call, state);
  return comm->stopper.lock();
}

bool dropStray(tuttiComm_t comm) {
  uint32_t joinFailed = kStray;
  if (!comm->state.compare_exchange_strong(joinFailed, kStray | kGone, kBoth)) return false;
  poolOf<tuttiComm>.putBack(comm);
  return true;
}

void abortHandle(tuttiComm_t comm, const char* call) {
  if (dropStray(comm)) return;
  const uint32_t before = comm->state.fetch_or(kInside | kAborted, kBoth);
  if (before & (kAborted | kGone | kStray)) {
    comm->state.fetch_and(~(kInside | kAborted) | before, kBoth);  // what was over stays as it was
    if (dropStray(comm)) return;                                   // it has become one just now
    return refuseGone(*comm, call, before);
  }
  if (before & kJoining)  // whoever joins ends it
    return comm->cancelled.store(true, std::memory_order_relaxed);
  stopAborted(*comm);
  if (!(before & kInside)) leave(*comm);
}

void destroyHandle(tuttiComm_t comm) {
  comm->state.fetch_or(kGone, kBoth);
  comm->communicator->leave();
  comm->communicator.reset();
}

}  // namespace tutti::api

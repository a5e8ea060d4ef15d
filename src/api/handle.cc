#include "api/handle.h"

#include <fmt/format.h>

#include "api/shelf.h"
#include "base/fork.h"

namespace tutti::api {
namespace {

constexpr auto kBoth = std::memory_order_acq_rel;

Shelf<tuttiComm>& shelf() {
  static auto* const shelf = new Shelf<tuttiComm>;  // outlives every thread of the program
  return *shelf;
}

tuttiComm_t newShell(int rank, int size) {
  const tuttiComm_t shell = shelf().take();
  shell->rank = rank;
  shell->size = size;
  shell->generation = fork::generation();
  return shell;
}

void stopAborted(tuttiComm& comm) {
  // A thread that is inside may leave, and let its reference go, at any moment; this one has its own.
  const auto communicator = comm.stopper.lock();
  if (!communicator) return;
  const std::string text = fmt::format("{} called tuttiCommAbort", communicator->rankName(comm.rank));
  communicator->stop(control::Stop::kAbort, Error(ErrorCode::kRemote, text));
}

void leave(tuttiComm& comm) {
  // Acquire-release: pairs with the same operation in abortHandle; exactly one of the two sees the other's bit and
  // frees.
  const uint32_t before = comm.state.fetch_and(~kInside, kBoth);
  if (!(before & (kAborted | kGone))) return;
  comm.communicator.reset();
  shelf().putBack(&comm);
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
  const tuttiComm_t shell = newShell(communicator->rank(), communicator->size());
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
  // Acquire-release: pairs with the operations of Visit and abortHandle; they see the communicator, this sees an abort.
  const uint32_t before = comm->state.fetch_and(~kJoining, kBoth);
  if (before & kAborted) stopAborted(*comm);
  leave(*comm);
}

void failHandle(tuttiComm_t comm, const Error& error) noexcept {
  try {
    std::lock_guard lock(comm->errorMutex);
    comm->asyncError = static_cast<tuttiResult_t>(error.code());
    comm->lastError = error.what();
  } catch (const std::exception&) {  // no memory for the text: the code alone must do
  }
  comm->state.fetch_or(kStray, kBoth);
  comm->state.fetch_and(~(kInside | kJoining), kBoth);
}

void checkHandle(tuttiComm_t comm, const char* call) {
  if (comm == nullptr) throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: comm is NULL", call));
  if (comm->magic != tuttiComm::kMagic)
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

Visit::Visit(tuttiComm_t comm, const char* call) : comm_(comm) {
  checkHandle(comm, call);
  const uint32_t before = comm->state.fetch_or(kInside, kBoth);
  if (before & kInside) refuse(*comm, call, before);
  if (before & (kAborted | kGone | kStray)) {
    comm->state.fetch_and(~kInside, kBoth);
    refuse(*comm, call, before);
  }
}

Visit::~Visit() { leave(*comm_); }

std::shared_ptr<comm::Communicator> reach(tuttiComm_t comm, const char* call) {
  checkHandle(comm, call);
  const uint32_t state = comm->state.load(std::memory_order_acquire);
  if (state & kJoining) refuse(*comm, call, state);
  refuseGone(*comm, call, state);
  return comm->stopper.lock();
}

bool dropStray(tuttiComm_t comm) {
  uint32_t stray = kStray;
  if (!comm->state.compare_exchange_strong(stray, kStray | kGone, kBoth)) return false;
  shelf().putBack(comm);
  return true;
}

void abortHandle(tuttiComm_t comm, const char* call) {
  if (dropStray(comm)) return;
  const uint32_t before = comm->state.fetch_or(kInside | kAborted, kBoth);
  if (before & (kAborted | kGone | kStray)) {
    comm->state.fetch_and(~(kInside | kAborted) | before, kBoth);  // what was over stays as it was
    return refuseGone(*comm, call, before);
  }
  if (before & kJoining)  // whoever joins ends it
    return comm->cancelled.store(true, std::memory_order_relaxed);
  stopAborted(*comm);
  if (!(before & kInside)) leave(*comm);
}

void destroyHandle(tuttiComm_t comm) {
  comm->state.fetch_or(kGone, kBoth);
  comm->communicator.reset();
}

}  // namespace tutti::api

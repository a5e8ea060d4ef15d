#include "api/handle.h"

#include <fmt/format.h>

namespace tutti::api {

tuttiComm_t makeHandle(std::shared_ptr<comm::Communicator> communicator) {
  static std::mutex mutex;
  static auto* const shells = new std::vector<std::unique_ptr<tuttiComm>>;  // outlives every thread of the program
  auto shell = std::make_unique<tuttiComm>();
  shell->rank = communicator->rank();
  shell->size = communicator->size();
  shell->stopper = communicator;
  shell->communicator = std::move(communicator);
  std::lock_guard lock(mutex);
  return shells->emplace_back(std::move(shell)).get();
}

void checkHandle(tuttiComm_t comm, const char* call) {
  if (comm == nullptr) throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: comm is NULL", call));
  if (comm->magic != tuttiComm::kMagic)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: comm is not a communicator", call));
}

namespace {

void leave(tuttiComm_t comm) {
  // Acquire-release: pairs with the same operation in abortHandle; exactly one of the two sees the other's bit and
  // frees.
  const uint32_t before = comm->state.fetch_and(~kInside, std::memory_order_acq_rel);
  if (before & kAborted) comm->communicator.reset();
}

}  // namespace

Visit::Visit(tuttiComm_t comm, const char* call) : comm_(comm) {
  checkHandle(comm, call);
  const uint32_t before = comm->state.fetch_or(kInside, std::memory_order_acq_rel);
  if (before & kInside)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}: another thread is using this communicator (rank {}); a communicator serves one thread "
                            "at a time",
                            call, comm->rank));
  if (before & (kAborted | kGone)) {
    comm->state.fetch_and(~kInside, std::memory_order_acq_rel);
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: comm (rank {}) was {}", call, comm->rank, before & kGone ? "destroyed" : "aborted"));
  }
}

Visit::~Visit() { leave(comm_); }

void abortHandle(tuttiComm_t comm) {
  const uint32_t before = comm->state.fetch_or(kInside | kAborted, std::memory_order_acq_rel);
  if (before & (kAborted | kGone)) {
    if (!(before & kInside)) comm->state.fetch_and(~kInside, std::memory_order_acq_rel);
    return;
  }
  // A thread that is inside may leave, and let its reference go, at any moment; this one has its own.
  if (const auto communicator = comm->stopper.lock())
    communicator->abort(fmt::format("rank {} called tuttiCommAbort", comm->rank));
  if (!(before & kInside)) leave(comm);
}

void destroyHandle(tuttiComm_t comm) {
  comm->state.fetch_or(kGone, std::memory_order_acq_rel);
  comm->communicator.reset();
}

}  // namespace tutti::api

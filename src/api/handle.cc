#include "api/handle.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <thread>

#include "api/handle_pool.h"
#include "api/texts.h"
#include "process/fork.h"

namespace tutti::api {
namespace {

constexpr auto kBoth = std::memory_order_acq_rel;

tuttiComm_t newShell(int rank, int size) {
  const tuttiComm_t shell = poolOf<tuttiComm>.take();
  shell->rank = shell->rankBefore = rank;
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

Error revokedBy(const comm::Team& team) noexcept {
  return errorOrOutOfMemory([&] {
    return Error(ErrorCode::kRemote, fmt::format("{} revoked the communicator", team.rankName(team.rank())));
  });
}

Error revokedWhileJoining(const tuttiComm& comm) noexcept {
  return errorOrOutOfMemory([&] {
    return Error(ErrorCode::kRemote, fmt::format("{} stopped joining: it was revoked", nameOfPending(comm)));
  });
}

Error endedBy(const comm::Team& team) noexcept {
  return errorOrOutOfMemory([&] {
    return Error(
        ErrorCode::kRemote,
        fmt::format("{} left without destroying the communicator (its process ended), while another was made of it",
                    team.rankName(team.rank())));
  });
}

void stopRevoked(comm::Team& team) noexcept { team.stop(control::Stop::kRevoke, revokedBy(team)); }

// A thread that is inside may leave, and let its reference go, at any moment; this one has its own.
void stopAborted(const std::weak_ptr<comm::Communicator>& stopper) noexcept {
  const auto communicator = stopper.lock();
  if (communicator) communicator->team().stop(control::Stop::kAbort, abortBy(communicator->team()));
}

// For what was made of it, and why that is given up.
void stopParent(const std::weak_ptr<comm::Communicator>& parent, uint32_t why) noexcept {
  const auto communicator = parent.lock();
  if (!communicator) return;
  comm::Team& team = communicator->team();
  if (why == kHurried) return team.stop(control::Stop::kDeath, endedBy(team));
  team.stop(control::Stop::kGivenUp, why == kRevoked ? revokedBy(team) : abortBy(team));
}

// What a parent does for its child waits for other ranks, which wait for this one: it ends when the parent is stopped
// on all. Afterwards the child's own join asks isGivenUp(); but a process that ends may not come to say so there.
void stopWaiting(const tuttiComm& pending, uint32_t before, uint32_t why) noexcept {
  const bool inParent = why == kHurried || !pending.joinsByItself.load(std::memory_order_relaxed);
  if (!(before & kDeferred) && inParent) stopParent(pending.parent, why);
}

// Sets a bit of one that is still joining; false when it is not, or not any more.
bool giveUp(tuttiComm& comm, uint32_t bit) noexcept {
  uint32_t before = comm.state.load(std::memory_order_relaxed);
  do {
    if (!(before & kJoining)) return false;
  } while (!comm.state.compare_exchange_weak(before, before | bit, kBoth));
  stopWaiting(comm, before, bit);
  return true;
}

void freeShell(tuttiComm& comm) {
  if (comm.communicator) comm.communicator->endBuffers();
  comm.communicator.reset();
  poolOf<tuttiComm>.putBack(&comm);
}

void leave(tuttiComm& comm) {
  // Acquire-release: pairs with the same operation in abortHandle; exactly one of the two sees the other's bit and
  // frees.
  const uint32_t before = comm.state.fetch_and(~(kInside | kSplitting | kSplittingOn), kBoth);
  if (before & (kAborted | kGone)) freeShell(comm);
}

[[noreturn]] void refuse(const tuttiComm& comm, const char* call, uint32_t state) {
  if (state & kDeferred)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}: comm ({}) is of a group that has not ended: it can be used after tuttiGroupEnd", call,
                            nameOfPending(comm)));
  if (state & kJoining)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}: comm ({}) is still joining; wait until tuttiCommGetAsyncError gives tuttiSuccess",
                            call, nameOfPending(comm)));
  if ((state & kSplitting) && !(state & kAborted))
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}: a split, duplicate, shrink or grow of this communicator (rank {}) is under way; wait "
                            "for what it makes, or abort that",
                            call, comm.rank));
  if ((state & kInside) && !(state & kAborted))  // whoever aborts is inside for a moment
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}: another thread is using this communicator (rank {}); a communicator serves one thread "
                            "at a time",
                            call, comm.rank));
  const char* what = state & kGone ? "was destroyed" : state & kAborted ? "was aborted" : "could not join";
  const std::string who = state & kStray ? nameOfPending(comm) : fmt::format("rank {}", comm.rank);
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: comm ({}) {}", call, who, what));
}

// Inlined into what every call begins with.
inline void enterKnown(tuttiComm_t comm, const char* call) {
  const uint32_t before = comm->state.fetch_or(kInside, kBoth);
  if (before & kInside) refuse(*comm, call, before);
  if (before & (kAborted | kGone | kStray)) {
    comm->state.fetch_and(~kInside, kBoth);
    refuse(*comm, call, before);
  }
}

}  // namespace

tuttiComm_t makeHandle(std::shared_ptr<comm::Communicator> communicator) {
  const tuttiComm_t shell = newShell(communicator->team().rank(), communicator->team().size());
  shell->stopper = communicator;
  shell->communicator = std::move(communicator);
  return shell;
}

tuttiComm_t makePendingHandle(int rank, int size, uint32_t more, const std::shared_ptr<comm::Communicator>& parent) {
  const tuttiComm_t shell = newShell(rank, size);
  shell->parent = parent;
  shell->isChild = parent != nullptr;
  shell->state.store(kInside | kJoining | more, std::memory_order_relaxed);
  return shell;
}

std::string nameOfPending(const tuttiComm& comm) {
  return fmt::format("rank {}{}", comm.rankBefore, comm.isChild ? " of its parent" : "");
}

void completeHandle(tuttiComm_t comm, std::shared_ptr<comm::Communicator> communicator) noexcept {
  if (communicator) comm->rank = communicator->team().rank(), comm->size = communicator->team().size();
  comm->stopper = communicator;
  comm->communicator = std::move(communicator);
  // In one step: whoever sees that it has joined finds nobody inside. Acquire-release: pairs with the operations of
  // CallGuard and abortHandle; they see the communicator, this sees an abort.
  bool revoked = false;
  uint32_t before = comm->state.load(std::memory_order_acquire);
  do {
    if ((before & kRevoked) && !std::exchange(revoked, true)) stopRevoked(comm->communicator->team());
  } while (!comm->state.compare_exchange_weak(before, before & ~(kInside | kJoining | kRevoked | kHurried), kBoth));
  if (!(before & kAborted)) return;
  stopAborted(comm->stopper);
  freeShell(*comm);
}

void failHandle(tuttiComm_t comm, const Error& error) noexcept {
  const uint32_t now = comm->state.load(std::memory_order_relaxed);
  const Error why = now & kRevoked ? revokedWhileJoining(*comm) : error;
  {
    std::lock_guard lock(comm->errorMutex);
    comm->asyncError = static_cast<tuttiResult_t>(why.code());
    setText(comm->lastError, why.what());
  }
  // Whoever has aborted it is done with it, and may have gone on to other calls: their errors stay the newest.
  if (!(now & kAborted)) processError.set(why.what());
  // In one step: an abort comes before it, and leaves the shell to this thread, or after it, and finds a stray.
  uint32_t before = comm->state.load(std::memory_order_relaxed);
  while (!comm->state.compare_exchange_weak(before, before & kAborted ? kStray | kAborted | kGone : kStray, kBoth)) {
  }
  if (before & kAborted) poolOf<tuttiComm>.putBack(comm);
}

void undefer(tuttiComm_t comm) noexcept {
  const uint32_t before = comm->state.fetch_and(~kDeferred, kBoth);
  for (const uint32_t bit : {kAborted, kRevoked})
    if (before & bit) stopWaiting(*comm, before & ~kDeferred, bit);
}

bool isGivenUp(const tuttiComm& comm) noexcept {
  return comm.state.load(std::memory_order_relaxed) & (kAborted | kRevoked | kHurried);
}

void hurryPending(tuttiComm_t comm) noexcept { giveUp(*comm, kHurried); }

void dropPending(tuttiComm_t comm) {
  comm->state.store(kGone, std::memory_order_release);
  poolOf<tuttiComm>.putBack(comm);
}

bool isCommunicator(tuttiComm_t comm) noexcept { return poolOf<tuttiComm>.holds(comm); }

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

CallGuard::CallGuard(tuttiComm_t comm, const char* call, Known) : comm_(comm) { enterKnown(comm, call); }

CallGuard::~CallGuard() { leave(*comm_); }

bool enterIdle(tuttiComm_t comm) noexcept {
  uint32_t idle = 0;
  return comm->state.compare_exchange_strong(idle, kInside, kBoth, std::memory_order_relaxed);
}

void leaveIdle(tuttiComm_t comm) noexcept { leave(*comm); }

Occupation::Occupation(tuttiComm_t comm, const char* call) : comm_(comm) {
  checkHandle(comm, call);
  enterKnown(comm, call);
  comm->state.fetch_or(kSplitting, kBoth);
}

Occupation::~Occupation() {
  if (comm_ != nullptr) leave(*comm_);
}

void Occupation::goOn() noexcept { comm_->state.fetch_or(kSplittingOn, kBoth); }

std::shared_ptr<comm::Communicator> lookUp(tuttiComm_t comm, const char* call) {
  checkHandle(comm, call);
  const uint32_t state = comm->state.load(std::memory_order_acquire);
  if (state & kJoining) refuse(*comm, call, state);
  refuseGone(*comm, call, state);
  return comm->stopper.lock();
}

bool dropStray(tuttiComm_t comm) {
  // Nobody is inside of one for longer than it takes to be refused.
  for (uint32_t state = kStray; !comm->state.compare_exchange_strong(state, kStray | kGone, kBoth); state = kStray) {
    if ((state & ~(kInside | kAborted)) != kStray) return false;
    std::this_thread::yield();
  }
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
  if (before & kJoining) return stopWaiting(*comm, before, kAborted);  // whoever joins ends it
  stopAborted(comm->stopper);
  if (!(before & kInside)) leave(*comm);
}

void revokeHandle(tuttiComm_t comm, const char* call) {
  checkHandle(comm, call);
  if (giveUp(*comm, kRevoked)) return;
  if (const auto communicator = lookUp(comm, call)) stopRevoked(communicator->team());
}

void destroyHandle(tuttiComm_t comm) {
  comm->state.fetch_or(kGone, kBoth);
  comm->communicator->leave();
  comm->communicator.reset();
}

}  // namespace tutti::api

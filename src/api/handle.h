// What a tuttiComm_t points to: a small shell around a communicator. It outlives the communicator (api/handle_pool.h),
// so that using one after its end is an error with a text and not a crash.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/types.h"
#include "comm/communicator.h"
#include "team/call.h"
#include "tutti/tutti.h"

namespace tutti::api {

// Operators made by tuttiRedOpCreatePreMulSum: one communicator's table, numbered from here on.
inline constexpr int kFirstMadeOp = 1024;
struct Operator {
  DataType type;
  uint64_t factor;
  const void* factorAt;  // on a GPU: read when an operation runs; null: `factor` holds
  bool alive;
};

// The arguments of a plain call, as they were given: without tables, configuration and stream, with an operator that
// all communicators have. Whatever else decides what becomes of it stays as it is for as long as the communicator
// lives.
struct Asked {
  const void* send;
  void* recv;
  size_t count;
  tuttiDataType_t type;
  tuttiRedOp_t op;  // and
  int root;         // 0 where it has none
  Collective collective;
  friend bool operator==(const Asked&, const Asked&) = default;
};

// The last ones of a communicator that went well. By whoever is inside.
class AskedBefore {
 public:
  struct One {
    Asked asked{};
    bool holds = false;  // `call` is of it, and has gone well
    comm::Call call;
    comm::Readied readied;
  };
  AskedBefore() = default;
  AskedBefore(const AskedBefore&) = delete;
  AskedBefore& operator=(const AskedBefore&) = delete;

  // Where a call of these arguments is kept, or another one is.
  One& placeOf(const Asked& asked) noexcept {
    const auto mixed = reinterpret_cast<uintptr_t>(asked.send) ^ reinterpret_cast<uintptr_t>(asked.recv) * 3;
    return all_[(mixed >> 12 ^ mixed >> 6 ^ static_cast<uintptr_t>(asked.collective)) % all_.size()];
  }

 private:
  std::array<One, 8> all_;
};

}  // namespace tutti::api

struct tuttiComm {
  std::atomic<uint32_t> state{0};       // of the bits below
  uint32_t generation = 0;              // of the process that made it: see process/fork.h
  std::atomic<bool> finalizing{false};  // tuttiCommFinalize has come back while work was queued
  int rank = 0, size = 0;               // of what a parent's split or shrink will make: written when that is known
  std::shared_ptr<tutti::comm::Communicator> communicator;  // touched by whoever holds kInside, or ends it
  std::weak_ptr<tutti::comm::Communicator> stopper;         // for any thread; never changed once it has joined
  std::vector<tutti::api::Operator> operators;
  tutti::api::AskedBefore askedBefore;
  // That the environment wins over what a call asks for. By whoever is inside.
  bool toldOverridden = false, toldUnreproducible = false;

  int rankBefore = 0;  // its own or, of such a child, its parent's: never changed
  bool isChild = false;
  std::weak_ptr<tutti::comm::Communicator> parent;  // of such a child: what it waits in until it joins by itself
  std::atomic<bool> joinsByItself{false};

  std::mutex errorMutex;  // guards the two below, which any thread may ask for
  tuttiResult_t asyncError = tuttiSuccess;
  std::string lastError;
};

namespace tutti::api {

inline constexpr uint32_t kInside = 1;   // a thread is in a call
inline constexpr uint32_t kAborted = 2;  // tuttiCommAbort was called: whoever leaves last frees
inline constexpr uint32_t kGone = 4;     // destroyed
inline constexpr uint32_t kJoining = 8;  // in the background, by a thread that is inside
inline constexpr uint32_t kStray = 16;   // could not join
// While it is joining:
inline constexpr uint32_t kDeferred = 32;  // or will, when the caller's group ends
inline constexpr uint32_t kRevoked = 64;   // tuttiCommRevoke was called
inline constexpr uint32_t kHurried = 128;  // the process ends
// While a communicator is made of it, by a thread that is inside:
inline constexpr uint32_t kSplitting = 256;
inline constexpr uint32_t kSplittingOn = 512;  // in the background: whoever asks for its state is told

// A shell of its own.
tuttiComm_t makeHandle(std::shared_ptr<comm::Communicator> communicator);

// One whose communicator is still being made, as `rank`; of a parent's split or shrink: by its `rank`. Whoever makes it
// calls one of the next two, once.
tuttiComm_t makePendingHandle(int rank, int size, uint32_t more = 0,
                              const std::shared_ptr<comm::Communicator>& parent = {});
void completeHandle(tuttiComm_t comm, std::shared_ptr<comm::Communicator> communicator) noexcept;
void failHandle(tuttiComm_t comm, const Error& error) noexcept;
// Or this one, when nobody has seen it and nobody will.
void dropPending(tuttiComm_t comm);
// The group has ended: from here on whoever gives the pending one up stops what its parent does for it.
void undefer(tuttiComm_t comm) noexcept;
// Whether whoever makes it is to end that.
bool isGivenUp(const tuttiComm& comm) noexcept;
// The process is ending: gives the pending one up.
void hurryPending(tuttiComm_t comm) noexcept;
// "rank 3", or "rank 3 of its parent".
std::string nameOfPending(const tuttiComm& comm);

// A thread's stay inside a communicator for one call. Throws Error: kInvalidArgument for NULL, a foreign pointer or a
// destroyed communicator, kInvalidUsage when another thread is inside.
class CallGuard {
 public:
  CallGuard(tuttiComm_t comm, const char* call);
  // Of a handle that is known to be one, of this process.
  static constexpr struct Known {
  } kKnown{};
  CallGuard(tuttiComm_t comm, const char* call, Known);
  // Of one that enterIdle() has entered.
  static constexpr struct Entered {
  } kEntered{};
  CallGuard(tuttiComm_t comm, Entered) noexcept : comm_(comm) {}
  ~CallGuard();
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;
  comm::Communicator& operator*() const noexcept { return *comm_->communicator; }
  const std::shared_ptr<comm::Communicator>& communicator() const noexcept { return comm_->communicator; }
  comm::Communicator* operator->() const noexcept { return comm_->communicator.get(); }

 private:
  tuttiComm_t comm_;
};

// Enters a communicator that is one, of this process, where nothing is in the way; false: something is, which a
// CallGuard tells. Whoever has entered leaves.
bool enterIdle(tuttiComm_t comm) noexcept;
void leaveIdle(tuttiComm_t comm) noexcept;

// The same for as long as a communicator is made of this one, on whatever thread: a call gets kInvalidUsage, which says
// so.
class Occupation {
 public:
  Occupation(tuttiComm_t comm, const char* call);
  ~Occupation();
  Occupation(Occupation&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  Occupation& operator=(Occupation&&) = delete;
  tuttiComm_t handle() const noexcept { return comm_; }
  comm::Communicator& operator*() const noexcept { return *comm_->communicator; }
  comm::Communicator* operator->() const noexcept { return comm_->communicator.get(); }
  // The caller does not wait for it.
  void goOn() noexcept;

 private:
  tuttiComm_t comm_;
};

// Whether this pointer, whatever it is, is or was a communicator. Reads nothing through it. Any thread.
bool isCommunicator(tuttiComm_t comm) noexcept;
// Throws Error: kInvalidArgument for NULL and foreign pointers, kInvalidUsage in a forked child.
void checkHandle(tuttiComm_t comm, const char* call);
// Throws Error when it was destroyed: for calls that any thread may make, whoever is inside.
void refuseGone(const tuttiComm& comm, const char* call, uint32_t state);
// The communicator, for a thread that is not inside; null once it is aborted. Throws Error while it is joining, and
// when it was destroyed.
std::shared_ptr<comm::Communicator> lookUp(tuttiComm_t comm, const char* call);
// True for one that could not join and is not ended yet: it has nothing to leave, and is gone now. Any thread.
bool dropStray(tuttiComm_t comm);
// Any thread; once more does no harm. Throws Error when it was destroyed.
void abortHandle(tuttiComm_t comm, const char* call);
// Any thread. A pending one is given up, and is a stray then. Throws Error when it was destroyed.
void revokeHandle(tuttiComm_t comm, const char* call);
void destroyHandle(tuttiComm_t comm);  // by a thread that is inside (holds a CallGuard)

}  // namespace tutti::api

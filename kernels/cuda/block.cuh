// What the threads of a block share while they run one work, how they wait, and how they say that something is wrong.
#pragma once
#include "kernels/cuda/platform.cuh"
#include "kernels/cuda/types.h"

namespace tutti::cuda {

inline constexpr uint32_t kMaxOperands = kThreads;  // of a step: a thread prepares one
inline constexpr uint32_t kStepsHeld = 128;         // in shared memory at a time
#ifdef TUTTI_EMULATION
inline constexpr uint32_t kSpinsBetweenLooks = 64;
#else
inline constexpr uint32_t kSpinsBetweenLooks = 2048;
#endif

// Where an operand of the current step lies. Memory of the caller is addressed by the piece's place in the message, a
// slot or a scratch buffer by its place in the slot.
enum class PlaceKind : uint8_t { kInput, kOutput, kBuffer, kSlot, kNowhere };
struct Place {
  std::byte* base = nullptr;
  PlaceKind kind = PlaceKind::kInput;
  // Of a slot: its number over the life of the link, and the link.
  int32_t peer = -1;
  uint64_t number = 0;
  uint32_t slotBytes = 0, depth = 0;
};

struct Block {
  KernelWork work;
  link::Fingerprint fingerprint;
  uint32_t channel, iterations;
  size_t rounds;
  uint32_t stop;        // some thread met trouble: everybody leaves at the next barrier
  uint32_t iteration;   // of the schedule
  uint32_t waitedLong;  // some thread did, in this work
  uint32_t waitingFor;  // the rank that the record says is waited for, while a thread waits for it
  uint32_t heldFrom;    // number of steps[0]
  schedule::Step now;   // the current step, when it may be direct: with the destinations that are to be written
  uint32_t directSlots;
  schedule::Step steps[kStepsHeld];
  Place places[kMaxOperands];
  End ins[kMaxLinks], outs[kMaxLinks];
};

// Tells the host how far the block is. `ended`: as Progress has it.
__device__ inline void tellProgress(const Block& block, uint32_t iteration, uint32_t ended) {
  Progress* const words = block.work.seat.progress;
  if (words == nullptr) return;
  storeLine(reinterpret_cast<std::byte*>(words + block.channel),
            {block.iterations, iteration, block.fingerprint.operation + 1, ended});
}

// The first block that meets trouble says so; what another rank did wrong is not overwritten by what follows from it.
__device__ inline void report(Block& block, const Report& what) {
  storeShared(&block.stop, 1);
  if (atomicExch(block.work.seat.reporting, 1u) != 0) return;
  Report& there = *block.work.seat.report;
  there.fault = what.fault;
  there.peer = what.peer;
  there.channel = block.channel;
  there.bytes = what.bytes;
  there.expected = what.expected;
  there.theirs = what.theirs;
  there.mine = block.fingerprint;
  storeRelease(&there.ready, 1);  // pairs with the host's acquire: the rest is complete
}

__device__ inline void reportWait(Block& block, Fault fault, int peer) {
  Report what;
  what.fault = fault;
  what.peer = peer;
  report(block, what);
}

// One wait of one thread: what it has to look at between two looks at what it waits for. Of several threads that wait
// long for different ranks, one has its rank in the record until its wait is over; then another takes its place.
class SpinWait {
 public:
  __device__ SpinWait(Block& block, int peer) : block_(block), peer_(peer) {}
  SpinWait(const SpinWait&) = delete;
  SpinWait& operator=(const SpinWait&) = delete;
  __device__ ~SpinWait() {
    if (began_ != 0 && peekShared(&block_.waitingFor) == rank()) storeShared(&block_.waitingFor, kNobody);
  }

  // False: give up, there is trouble.
  __device__ bool goesOn() {
    if (peekShared(&block_.stop) != 0) return false;
    if (++spins_ % kSpinsBetweenLooks != 0) return true;
    return look();
  }

 private:
  __device__ uint32_t rank() const { return static_cast<uint32_t>(peer_); }
  __device__ bool look() {
    const DeviceComm& seat = block_.work.seat;
    if (peek(seat.abort) != 0) {
      reportWait(block_, Fault::kAborted, peer_);
      return false;
    }
    const uint64_t now = nowNs();
    if (began_ == 0) began_ = now;
    if (peekShared(&block_.waitingFor) == kNobody) {
      storeShared(&block_.waitingFor, rank());
      storeShared(&block_.waitedLong, 1);
      tellProgress(block_, peekShared(&block_.iteration), 0);
      if (seat.progress != nullptr) storeRelaxed(&seat.progress[block_.channel].waitingFor, rank());
    }
    if (seat.deadlineNs == 0 || now - began_ < seat.deadlineNs) return true;
    reportWait(block_, Fault::kDeadline, peer_);
    return false;
  }

  Block& block_;
  int peer_;
  uint32_t spins_ = 0;
  uint64_t began_ = 0;
};

}  // namespace tutti::cuda

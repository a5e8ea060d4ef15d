// What a launch of the collective kernel works on. Plain data: the host fills it in, every block reads it.
//
// One launch runs any number of works, each one call of one rank; of each work a block a channel. What lasts longer
// than a launch lives in the memory of the GPU: a program (a rank's schedule, uploaded once), the ends of the links
// with their counters, and the seat of the communicator. So a launch is only its arguments, and a CUDA graph that
// replays it goes on where the last launch stopped.
#pragma once
#include <cstddef>
#include <cstdint>

#include "device/protocol.h"
#include "kernels/arithmetic.h"
#include "kernels/layout.h"
#include "link/fifo.h"
#include "schedule/schedule.h"

namespace tutti::device {

// Links of each direction that one block can serve.
inline constexpr uint32_t kMaxLinks = 64;

// Each protocol has FIFOs of its own: what one leaves in a slot could look like the other's flags.

// Bytes of one segment that a slot carries when it may have to carry `maxSpan` of them.
constexpr uint32_t chunkBytes(Protocol protocol, uint32_t slotBytes, uint32_t maxSpan) noexcept {
  const Grain grain = rowOf(protocol).grain;
  return slotBytes / grain.bytes / maxSpan * grain.payload;
}

// Whether the two ranks of a link reach each other's registered buffers: at the same addresses, or those that the
// reader or writer has mapped.
enum class Direct : uint8_t { kNever, kHere, kMapped };

// The numbers of the buffers that one rank lets others map: 1 and up. 0 is the address space as it is.
inline constexpr uint32_t kWindows = 64;

// A peer's buffer as this rank has mapped it. Whoever follows what the peer says of it stays within.
struct MappedWindow {
  uint64_t base = 0;  // 0: it is not mapped
  uint64_t bytes = 0;
  // Where `bytes` from `at` on are; 0: not all of them are in it.
  constexpr uint64_t find(uint64_t at, uint64_t wanted) const noexcept {
    return base != 0 && at <= bytes && wanted <= bytes - at ? base + at : 0;
  }
};
static_assert(sizeof(MappedWindow) == 16);

// A call's part of a registered buffer, and who may use it in place.
struct Shared {
  size_t offset = 0;    // of it in the window
  uint16_t window = 0;  // 0: not everyone whom it is for has mapped it
  bool here = false;    // every rank to which links are Direct::kHere
  constexpr bool any() const noexcept { return here || window != 0; }
};

// One end of one direction of a link, on one channel, for one protocol. `fifo.slots` and `fifo.headers` lie where the
// receiver reads fast, `fifo.released` where the sender does.
struct End {
  link::Fifo fifo;
  uint64_t passed = 0;  // slots posted so far (sender) or taken (receiver)
  Direct direct = Direct::kNever;
  bool peerReadable = false;  // during an operation: the peer has been told to read this rank's input in place
  uint64_t released = 0;      // of the sender: how many the receiver had released when last looked at
};

// A rank's schedule in the memory of its GPU. `inPeers` and `outPeers` are ranks, as in schedule::Schedule.
struct Program {
  const schedule::Step* steps = nullptr;
  const schedule::Operand* operands = nullptr;
  const int* inPeers = nullptr;
  const int* outPeers = nullptr;
  std::byte* scratch = nullptr;  // for each channel: `scratches` buffers of `scratchBytes`
  uint32_t stepCount = 0;
  uint32_t scratchBytes = 0;
  uint16_t inCount = 0, outCount = 0, scratches = 0;
  uint8_t maxLag = 0;
};

// kSpot: what a peer says of its memory, or has done in this rank's, lies outside of what one has shared with the
// other. kNotWritable: the peer speaks of a buffer that this rank has not mapped, or of an output that it has not
// opened.
enum class Fault : uint32_t { kNone, kMismatch, kBytes, kDeadline, kAborted, kSpot, kNotWritable };

// The first trouble that a block of this communicator met, in host memory. `ready` is set last.
struct alignas(128) Report {
  uint32_t ready = 0;
  Fault fault = Fault::kNone;
  int32_t peer = -1;  // whom the block waited for, or whose slot it was
  uint32_t channel = 0;
  uint64_t bytes = 0, expected = 0;  // kBytes; kSpot: in `bytes`, how many there should be
  link::Fingerprint theirs, mine;    // kMismatch, kBytes
};

inline constexpr uint32_t kNobody = ~0u;

// How far a channel is, in host memory, for whoever looks. Written when an operation ends, when it has waited long, and
// now and then in between: stores to the host hold up what a block releases behind them. The first four words are
// written as one.
struct alignas(64) Progress {
  uint32_t iterations = 0, iteration = 0;
  uint32_t begun = 0, ended = 0;  // operations on this channel
  uint32_t waitingFor = kNobody;  // a rank that was waited for long, in this operation
};

// A communicator's place on its GPU, in the memory of the GPU.
//
// Collectives and each message between two ranks are numbered apart, and may run at the same time: `operations` and
// `progress` are those of this work, the ends are those of its channels, from `firstChannel` on.
struct DeviceComm {
  End* sendEnds = nullptr;  // at endIndex()
  End* recvEnds = nullptr;
  uint32_t* operations = nullptr;         // a counter a channel: numbers the operations for their fingerprints
  uint32_t* directSlots = nullptr;        // beside each of them: slots that were read or written in place
  uint32_t* reporting = nullptr;          // set by the first block that reports
  const MappedWindow* windows = nullptr;  // what of each peer is mapped, kWindows a peer; null: nothing
  const uint32_t* abort = nullptr;        // host memory: not 0 ends every wait
  Report* report = nullptr;               // host memory
  Progress* progress = nullptr;           // host memory, one a channel; null: nobody looks
  uint64_t deadlineNs = 0;                // how long a wait may last; 0: for ever
  uint64_t llFlagMask = 0xffffffff;       // tests shorten it, to see the flags wrap around
  int32_t size = 1;
  uint32_t channels = 1;      // of the communicator, all together
  uint32_t firstChannel = 0;  // of the work

  constexpr size_t endIndex(Protocol protocol, uint32_t channel, int peer) const noexcept {
    return (static_cast<size_t>(protocol) * channels + firstChannel + channel) * static_cast<size_t>(size) +
           static_cast<size_t>(peer);
  }
};

// One call of one rank.
struct KernelWork {
  DeviceComm seat;
  Program program;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  kernels::Layout layout;  // its tables, if any, where the GPU can read them; each block sets its channel
  kernels::Arithmetic arithmetic;
  const void* factorAt = nullptr;  // where the factor is read when the work begins; null: it is in `arithmetic`
  link::Fingerprint fingerprint;   // but for its number
  uint32_t firstBlock = 0;         // of the launch; the work has layout.channels of them
  Protocol protocol = Protocol::kSimple;
  bool scalesInput = false;  // pre-mul-sum: every read of the input is multiplied by the factor
  Shared peerReadable,
      peerWritable;  // over direct links: the input, for peers to read, and the output, for peers to write

  constexpr bool direct() const noexcept { return peerReadable.any() || peerWritable.any(); }
};

// The arguments of a launch.
inline constexpr uint32_t kMaxInlineWorks = 10;
struct KernelLaunch {
  uint32_t count = 0;
  const KernelWork* more = nullptr;  // where the GPU can read them, when there are more than fit in here; else null
  KernelWork works[kMaxInlineWorks];
};
static_assert(sizeof(KernelLaunch) <= 4096);

}  // namespace tutti::device

// Direct links: a slot need not carry its payload where both ranks reach each other's registered buffers. Each operand
// is decided by itself, as the step comes:
//
//   the value lands (schedule::kDirectWrite), and the receiver has opened its output for this operation:
//                          the sender writes it there, and the slot only says so;
//   it is a segment of the sender's input as it is, and the sender lends its input:
//                          the slot says where it lies, the receiver reads it there, and the sender's operation does
//                          not end before;
//   else                   it goes through the slot.
//
// What a peer says is followed only into memory that it has shared with this rank, and whole: ranks of one process
// share all that the process has. Else the operation ends, and names the peer.
//
// Nobody has to know what buffers the other ranks registered, and nobody waits to learn it. That ranks do not meet in
// one place is proved of every schedule (proof/races.h).
#pragma once
#include "kernels/cuda/move.cuh"

namespace tutti::cuda {

// Tells `spot`, for the other end of a link, where in a buffer of this rank's it is. False: it can not get there.
__device__ inline bool locate(const Shared& buffer, Direct direct, const std::byte* begin, size_t offset,
                              link::RemoteAddress& spot) {
  if (direct == Direct::kHere && buffer.here)
    spot = {reinterpret_cast<uint64_t>(begin + offset), 0};
  else if (direct == Direct::kMapped && buffer.window != 0)
    spot = {buffer.offset + offset, buffer.window};
  else
    return false;
  return true;
}

// A spot that the peer may change at any time: read once.
__device__ inline link::RemoteAddress readSpot(const void* at) {
  const auto* const words = static_cast<const uint64_t*>(at);
  return {peek(words), peek(words + 1)};
}

// Always false, as whoever calls it returns.
__device__ inline bool notThere(Block& block, Fault fault, int peer, uint64_t bytes) {
  Report what;
  what.fault = fault;
  what.peer = peer;
  what.bytes = bytes;
  report(block, what);
  return false;
}

// Sets `base` to where `bytes` of the peer's, from a spot on, are for this rank. False: there is trouble. A look at the
// table is enough: the peer named the window after this rank had said that it stands there.
__device__ inline bool follow(Block& block, Direct direct, const link::RemoteAddress& spot, uint64_t bytes,
                              Place& place) {
  uint64_t at = spot.at;
  if (direct == Direct::kHere) {
    if (spot.window != 0) return notThere(block, Fault::kNotWritable, place.peer, bytes);
  } else {
    const MappedWindow* const windows = block.work.seat.windows;
    if (windows == nullptr || spot.window == 0 || spot.window >= kWindows)
      return notThere(block, Fault::kNotWritable, place.peer, bytes);
    const MappedWindow& there = windows[static_cast<size_t>(place.peer) * kWindows + spot.window];
    const MappedWindow window{peek(&there.base), peek(&there.bytes)};
    if (window.base == 0) return notThere(block, Fault::kNotWritable, place.peer, bytes);
    at = window.find(spot.at, bytes);
    if (at == 0) return notThere(block, Fault::kSpot, place.peer, bytes);
  }
  place.base = reinterpret_cast<std::byte*>(at);
  return true;
}

// The receiver's part at the begin of an operation: its senders may write to its output from now on.
__device__ inline void openOutput(const Block& block) {
  for (uint32_t i = threadIdx.x; i < block.work.program.inCount; i += kThreads) {
    link::RemoteAddress output;
    if (!locate(block.work.peerWritable, block.ins[i].direct, block.work.output, 0, output)) continue;
    link::Counter& line = *block.ins[i].fifo.released;
    line.output = output;
    storeRelease(&line.outputOf, uint64_t{block.fingerprint.operation} + 1);  // pairs with openedOutput
  }
}

// Whether the receiver's output is known to be open by now.
__device__ inline bool isOpen(const Block& block, const End& end) {
  // Acquire: pairs with openOutput.
  return loadAcquire(&end.fifo.released->outputOf) == uint64_t{block.fingerprint.operation} + 1;
}

// Whether this rank has opened its output to the sender at the other end.
__device__ inline bool hasOpened(const Block& block, const End& end) {
  const Shared& peerWritable = block.work.peerWritable;
  return end.direct == Direct::kHere ? peerWritable.here : peerWritable.window != 0;
}

// Whether the step only hands a segment of the input on.
__device__ inline bool passesInput(const Block& block, const schedule::Step& step) {
  return step.fromCount == 1 && step.span == 1 && !block.work.scalesInput &&
         block.work.program.operands[step.fromBegin].kind() == schedule::Operand::Kind::kInput;
}

__device__ inline link::SlotHeader& headerOf(const End& end) {
  return end.fifo.headers[end.passed & (end.fifo.depth - 1)];
}

// The sender's choice for one destination, whose place it sets. It goes into the header, which is posted later: nobody
// keeps it. `first`: the first run of the step; `outputEnd`: where the last one ends in the output. False: there is
// trouble.
__device__ inline bool chooseCarriage(Block& block, const schedule::Step& step, End& end, const Run& first,
                                      size_t outputEnd, Place& place) {
  link::SlotHeader& header = headerOf(end);
  link::RemoteAddress at;
  header.carried = link::PayloadLocation::kInSlot;
  if ((step.flags & schedule::kDirectWrite) != 0 && isOpen(block, end)) {
    if (!follow(block, end.direct, readSpot(&end.fifo.released->output), outputEnd, place)) return false;
    header.carried = link::PayloadLocation::kAtReceiver;
    place.kind = PlaceKind::kOutput;
  } else if (passesInput(block, step) &&
             locate(block.work.peerReadable, end.direct, block.work.input, first.input, at)) {
    header.carried = link::PayloadLocation::kAtSender;
    memcpy(header.inlined, &at, sizeof at);
    place.kind = PlaceKind::kNowhere;
    end.peerReadable = true;
  } else {
    return true;
  }
  atomicAdd(&block.directSlots, 1u);
  return true;
}

// The receiver's part: the slot has come, and says where its payload of `bytes` is. False: there is trouble.
__device__ inline bool followCarriage(Block& block, const End& end, uint64_t bytes, Place& place) {
  const link::SlotHeader& header = headerOf(end);
  const auto carried = static_cast<link::PayloadLocation>(peek(reinterpret_cast<const uint32_t*>(&header.carried)));
  if (carried == link::PayloadLocation::kAtReceiver) {
    if (!hasOpened(block, end)) return notThere(block, Fault::kNotWritable, place.peer, bytes);
    place.base = block.work.output;
    place.kind = PlaceKind::kOutput;
  } else if (carried == link::PayloadLocation::kAtSender) {
    place.kind = PlaceKind::kBuffer;
    return follow(block, end.direct, readSpot(header.inlined), bytes, place);
  }
  return true;
}

// Leaves out of block.places the destinations that nothing has to be written to: a value that is read in place, and one
// that is there already. Returns the step with those that are left. All threads call it, behind a barrier.
__device__ inline const schedule::Step& keepStores(Block& block, const schedule::Step& step, bool copies,
                                                   const Run& first, Grain grain) {
  if (threadIdx.x == 0) {
    const std::byte* const source = placeOf(block.places[0], first, grain);
    uint32_t kept = step.fromCount;
    for (uint32_t i = step.fromCount; i < uint32_t{step.fromCount} + step.toCount; ++i) {
      const Place place = block.places[i];
      const bool isThere = copies && placeOf(place, first, grain) == source;
      if (place.kind != PlaceKind::kNowhere && !isThere) block.places[kept++] = place;
    }
    block.now = step;
    block.now.toCount = static_cast<uint16_t>(kept - step.fromCount);
  }
  __syncthreads();
  return block.now;
}

// What was lent has been read when its slot is released. False: there is trouble.
__device__ inline bool awaitReaders(Block& block) {
  __syncthreads();
  bool failed = false;
  for (uint32_t i = threadIdx.x; i < block.work.program.outCount && !failed; i += kThreads) {
    End& end = block.outs[i];
    if (!end.peerReadable) continue;
    const auto* const released = reinterpret_cast<const uint64_t*>(&end.fifo.released->value);
    SpinWait patience(block, block.work.program.outPeers[i]);
    while (loadAcquire(released) != end.passed && !failed) failed = !patience.goesOn();  // pairs with releaseSlot
  }
  return !__syncthreads_or(failed);
}

}  // namespace tutti::cuda

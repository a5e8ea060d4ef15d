// Direct links: a slot need not carry its payload where both ranks reach each other's registered buffers. Each operand
// is decided by itself, as the step comes:
//
//   the value lands (schedule::kLands), and the receiver has opened its output for this operation:
//                          the sender writes it there, and the slot only says so;
//   it is a segment of the sender's input as it is, and the sender lends its input:
//                          the slot says where it lies, the receiver reads it there, and the sender's operation does
//                          not end before;
//   else                   it goes through the slot.
//
// Nobody has to know what buffers the other ranks registered, and nobody waits to learn it. That ranks do not meet in
// one place is proved of every schedule (schedule/races.h).
#pragma once
#include "kernels/cuda/move.cuh"

namespace tutti::cuda {

// Tells `spot`, for the other end of a link, where in a buffer of this rank's it is. False: it can not get there.
__device__ inline bool locate(const Shared& buffer, Direct direct, const std::byte* begin, size_t offset,
                              link::Spot& spot) {
  if (direct == Direct::kHere && buffer.here)
    spot = {reinterpret_cast<uint64_t>(begin + offset), 0};
  else if (direct == Direct::kMapped && buffer.window != 0)
    spot = {buffer.offset + offset, buffer.window};
  else
    return false;
  return true;
}

// Where a peer's spot is for this rank. A look is enough: the peer named the window after this rank had said that its
// address stands in the table.
__device__ inline std::byte* follow(const Block& block, int peer, const link::Spot& spot) {
  const uint64_t* const table = block.work.seat.windows + static_cast<size_t>(peer) * kWindows;
  const uint64_t base = spot.window == 0 ? 0 : peek(table + spot.window);
  return reinterpret_cast<std::byte*>(base + spot.at);
}

// The receiver's part at the begin of an operation: its senders may write to its output from now on.
__device__ inline void openOutput(const Block& block) {
  for (uint32_t i = threadIdx.x; i < block.work.program.inCount; i += kThreads) {
    link::Spot output;
    if (!locate(block.work.opened, block.ins[i].direct, block.work.output, 0, output)) continue;
    link::Counter& line = *block.ins[i].fifo.released;
    line.output = output;
    storeRelease(&line.outputOf, uint64_t{block.fingerprint.operation} + 1);  // pairs with openedOutput
  }
}

// Where the receiver's output begins, if it is known to be open by now; else null.
__device__ inline std::byte* openedOutput(const Block& block, const End& end, int peer) {
  const link::Counter& line = *end.fifo.released;
  // Acquire: pairs with openOutput.
  if (loadAcquire(&line.outputOf) != uint64_t{block.fingerprint.operation} + 1) return nullptr;
  return follow(block, peer, line.output);
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
// keeps it. `first`: the first run of the step.
__device__ inline void chooseCarriage(Block& block, const schedule::Step& step, End& end, const Run& first,
                                      Place& place) {
  link::SlotHeader& header = headerOf(end);
  std::byte* const output = (step.flags & schedule::kLands) != 0 ? openedOutput(block, end, place.peer) : nullptr;
  link::Spot at;
  header.carried = link::Carried::kInSlot;
  if (output != nullptr) {
    header.carried = link::Carried::kAtReceiver;
    place.base = output;
    place.kind = PlaceKind::kOutput;
  } else if (passesInput(block, step) && locate(block.work.lent, end.direct, block.work.input, first.input, at)) {
    header.carried = link::Carried::kAtSender;
    memcpy(header.inlined, &at, sizeof at);
    place.kind = PlaceKind::kNowhere;
    end.lent = true;
  } else {
    return;
  }
  atomicAdd(&block.directSlots, 1u);
}

// The receiver's part: the slot has come, and says where its payload is.
__device__ inline void followCarriage(const Block& block, const End& end, Place& place) {
  const link::SlotHeader& header = headerOf(end);
  if (header.carried == link::Carried::kAtReceiver) {
    place.base = block.work.output;
    place.kind = PlaceKind::kOutput;
  } else if (header.carried == link::Carried::kAtSender) {
    link::Spot at;
    memcpy(&at, header.inlined, sizeof at);
    place.base = follow(block, place.peer, at);
    place.kind = PlaceKind::kBuffer;
  }
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
    if (!end.lent) continue;
    const auto* const released = reinterpret_cast<const uint64_t*>(&end.fifo.released->value);
    Patience patience(block, block.work.program.outPeers[i]);
    while (loadAcquire(released) != end.passed && !failed) failed = !patience.goesOn();  // pairs with releaseSlot
  }
  return !__syncthreads_or(failed);
}

}  // namespace tutti::cuda

// How a block runs one work: the schedule's steps, round after round, as the host's lanes do (src/engine/lane.cc). A
// lane that can not go on returns; a block waits, so this is straight-line code with two barriers a step.
//
//   prepare   one thread an operand: waits until the source is posted or the destination free, finds its memory
//   ---       barrier: all operands are there
//   move      all threads: sources to destinations
//   ---       barrier: everything is read and written
//   settle    one thread an operand: releases the source, posts the destination
//
// Each barrier is also the vote whether to go on: one thread's trouble ends all of them at the same place.
//
// In LL and LL128 the data says by itself that it has arrived. Their slots are posted before the data moves; the header
// then only tells the receiver what the slot is, so that a mismatch is found in every protocol alike.
#pragma once
#include <bit>

#include "kernels/cuda/direct.cuh"
#include "kernels/cuda/move.cuh"
#include "kernels/walk.h"

namespace tutti::cuda {

// What one thread has to do with one operand of a step.
struct Hold {
  End* end = nullptr;  // of a link; else nothing is to be done
  uint64_t number = 0;
  bool isSource = false;
  bool failed = false;  // there is trouble
};

__device__ inline uint64_t* sequenceOf(const link::Fifo& fifo, uint64_t number) {
  return reinterpret_cast<uint64_t*>(&fifo.headers[number & (fifo.depth - 1)].sequence);
}

// Needs an acquire of the slot's sequence.
__device__ inline link::Said readSaid(const link::SlotHeader& header) {
  const auto* const words = reinterpret_cast<const uint64_t*>(&header.fingerprint);
  const link::Fingerprint::Words mark{peek(words), peek(words + 1)};
  return {std::bit_cast<link::Fingerprint>(mark), peek(&header.bytes)};
}

__device__ inline bool matches(Block& block, const link::Said& said, int peer, uint32_t bytes) {
  const bool same = said.fingerprint == block.fingerprint;
  if (same && said.bytes == bytes) return true;
  Report what;
  what.fault = same ? Fault::kBytes : Fault::kMismatch;
  what.peer = peer;
  what.bytes = said.bytes;
  what.expected = bytes;
  what.theirs = said.fingerprint;
  report(block, what);
  return false;
}

// Acquire: pairs with the release in postSlot, here or on the host; the header and, in Simple, the data are complete.
__device__ inline bool awaitPosted(Block& block, const End& end, int peer, uint32_t bytes) {
  const uint64_t* const sequence = sequenceOf(end.fifo, end.passed);
  SpinWait patience(block, peer);
  while (loadAcquire(sequence) != end.passed + 1)
    if (!patience.goesOn()) return false;
  return matches(block, readSaid(headerOf(end)), peer, bytes);
}

// Acquire: pairs with the release in releaseSlot; the slot that is about to be overwritten has been read. Looks at the
// receiver's counter only when what was seen of it last leaves no room.
__device__ inline bool awaitRoom(Block& block, End& end, int peer) {
  const auto* const released = reinterpret_cast<const uint64_t*>(&end.fifo.released->value);
  if (end.passed - end.released < end.fifo.depth) return true;
  SpinWait patience(block, peer);
  while (end.passed - (end.released = loadAcquire(released)) >= end.fifo.depth)
    if (!patience.goesOn()) return false;
  return true;
}

__device__ inline void postSlot(const Block& block, const Hold& hold, uint32_t bytes) {
  const link::Fifo& fifo = hold.end->fifo;
  link::SlotHeader& header = fifo.headers[hold.number & (fifo.depth - 1)];
  header.fingerprint = block.fingerprint;
  header.bytes = bytes;
  storeRelease(sequenceOf(fifo, hold.number), hold.number + 1);  // pairs with awaitPosted
}

__device__ inline void releaseSlot(const Hold& hold) {
  storeRelease(reinterpret_cast<uint64_t*>(&hold.end->fifo.released->value), hold.number + 1);  // with awaitRoom
}

template <class Protocol>
inline constexpr bool kDataTells = rowOf(Protocol::kProtocol).dataTells;

// The payload of a slot that is full or is to be filled; a small one of Simple lies in the header's line.
template <class Protocol>
__device__ inline std::byte* payloadOf(const End& end, uint32_t bytes) {
  const uint64_t place = end.passed & (end.fifo.depth - 1);
  if (!kDataTells<Protocol> && bytes <= link::kInlineBytes) return end.fifo.headers[place].inlined;
  return end.fifo.slots + place * end.fifo.slotBytes;
}

// Calls visit(run) for each piece of the step's segments in this round. Returns the bytes of the slot that they fill.
template <class Visit>
__device__ uint32_t forEachRun(const Block& block, const schedule::Step& step, size_t round, bool byInput, Grain grain,
                               Visit visit) {
  const kernels::Layout& layout = block.work.layout;
  const auto size = static_cast<uint32_t>(sizeOf(block.work.arithmetic.type));
  uint32_t segment = step.segment, grains = 0, filled = 0;
  for (uint32_t i = 0; i < step.span; ++i) {
    const kernels::Piece piece = layout.piece(segment, round, byInput);
    if (++segment == layout.segments) segment = 0;
    if (piece.count == 0) continue;
    const Run run{piece.input * size, piece.output * size, grains, static_cast<uint32_t>(piece.count) * size};
    forgetWhatWasRead();  // the layout, whose registers the data needs
    visit(run);
    filled = grains * grain.payload + run.bytes;
    grains += (run.bytes + grain.payload - 1) / grain.payload;
  }
  return filled;
}

// The bytes of a scratch buffer before those of a step that reads it from a later segment on.
__device__ inline size_t skippedBytes(const Block& block, const schedule::Step& step, size_t round, Grain grain) {
  if (step.skip == 0) return 0;
  const kernels::Layout& layout = block.work.layout;
  const bool byInput = kernels::goesByInput(layout, block.work.program.operands, step);
  const uint32_t filled =
      forEachRun(block, kernels::partBefore(layout, step), round, byInput, grain, [](const Run&) {});
  return size_t{filled + grain.payload - 1} / grain.payload * grain.payload;
}

// `first`: the first run of the step; `outputEnd`: where the last one ends in the output.
template <class Protocol>
__device__ Hold prepare(Block& block, const schedule::Step& step, size_t round, uint32_t i, uint32_t bytes,
                        const Run& first, size_t outputEnd) {
  using Kind = schedule::Operand::Kind;
  const Program& program = block.work.program;
  const bool isSource = i < step.fromCount;
  const schedule::Operand operand =
      program.operands[isSource ? step.fromBegin + i : step.toBegin + (i - step.fromCount)];
  Place& place = block.places[i];
  if (operand.kind() == Kind::kLink) {
    End& end = (isSource ? block.ins : block.outs)[operand.index()];
    const int peer = (isSource ? program.inPeers : program.outPeers)[operand.index()];
    if (!(isSource ? awaitPosted(block, end, peer, bytes) : awaitRoom(block, end, peer))) return {.failed = true};
    place = {payloadOf<Protocol>(end, bytes), PlaceKind::kSlot, peer, end.passed, end.fifo.slotBytes, end.fifo.depth};
    Hold hold{&end, end.passed, isSource, false};
    if (kDataTells<Protocol> || end.direct == Direct::kNever) return hold;
    if (isSource)
      hold.failed = !followCarriage(block, end, bytes, place);
    else if (block.work.direct())
      hold.failed = !chooseCarriage(block, step, end, first, outputEnd, place);
    else
      headerOf(end).carried = link::PayloadLocation::kInSlot;
    return hold;
  }
  if (operand.kind() == Kind::kInput)
    place = {const_cast<std::byte*>(block.work.input), PlaceKind::kInput};
  else if (operand.kind() == Kind::kOutput)
    place = {block.work.output, PlaceKind::kOutput};
  else
    place = {program.scratch + (size_t{block.channel} * program.scratches + operand.index()) * program.scratchBytes +
                 (isSource ? skippedBytes(block, step, round, Protocol::kGrain) : 0),
             PlaceKind::kBuffer};
  return {};
}

__device__ inline Reduction reductionOf(const Block& block, const schedule::Step& step) {
  const kernels::Arithmetic& arithmetic = block.work.arithmetic;
  const int scaled = block.work.scalesInput ? kernels::inputOf(block.work.program.operands, step) : -1;
  const bool divides = arithmetic.op == ReduceOp::kAvg && (step.flags & schedule::kFinalise) != 0;
  return {kernels::foldOf(arithmetic.op, scaled >= 0), divides ? arithmetic.divisor : 1, arithmetic.factor, scaled};
}

// False: there is trouble, the block ends.
template <class Protocol, class Arithmetic>
__device__ bool runStep(Block& block, const schedule::Step& step, size_t round) {
  constexpr bool kPostsFirst = kDataTells<Protocol>;
  constexpr Grain kGrain = Protocol::kGrain;
  const bool byInput = kernels::goesByInput(block.work.layout, block.work.program.operands, step);
  Run first{};
  size_t outputEnd = 0;
  const uint32_t bytes = forEachRun(block, step, round, byInput, kGrain, [&](const Run& run) {
    if (run.grains == 0) first = run;
    outputEnd = std::max(outputEnd, run.output + run.bytes);
  });
  if (bytes == 0 && !block.work.layout.speaks) return true;
  const uint32_t operands = step.fromCount + step.toCount;
  Hold hold;
  if (threadIdx.x < operands) hold = prepare<Protocol>(block, step, round, threadIdx.x, bytes, first, outputEnd);
  if (__syncthreads_or(hold.failed)) return false;
  if (hold.end != nullptr) hold.end->passed = hold.number + 1;
  if (kPostsFirst && hold.end != nullptr && !hold.isSource) postSlot(block, hold, bytes);
  const Reduction reduction = reductionOf(block, step);
  const bool copies = step.fromCount == 1 && reduction.scaledSource < 0 && reduction.divisor <= 1;
  const bool mayBeDirect = !kPostsFirst && block.work.direct();
  const schedule::Step& now = mayBeDirect ? keepStores(block, step, copies, first, kGrain) : step;
  bool moved = true;
  if (now.toCount > 0)
    forEachRun(block, step, round, byInput, kGrain, [&](const Run& run) {
      if (copies)
        moved = moved && Protocol::template move<CopyMath>(block, now, run, reduction);
      else
        Arithmetic::with(block.work.arithmetic.type, [&](auto math) {
          moved = moved && Protocol::template move<decltype(math)>(block, now, run, reduction);
        });
    });
  if constexpr (kPostsFirst) {
    const uint32_t grains = (bytes + kGrain.payload - 1) / kGrain.payload;
    for (uint32_t i = step.fromCount; i < operands; ++i)
      if (block.places[i].kind == PlaceKind::kSlot) Protocol::endSlot(block, i, grains);
  }
  if (__syncthreads_or(!moved)) return false;
  if (hold.end == nullptr) return true;
  if (hold.isSource)
    releaseSlot(hold);
  else if (!kPostsFirst)
    postSlot(block, hold, bytes);
  return true;
}

// Brings step `number` into shared memory, with those that follow it.
__device__ inline const schedule::Step& stepAt(Block& block, uint32_t number) {
  const Program& program = block.work.program;
  if (number < block.heldFrom || number >= block.heldFrom + kStepsHeld) {
    __syncthreads();  // the steps that are held have been read
    const uint32_t from = number / kStepsHeld * kStepsHeld;
    for (uint32_t i = threadIdx.x; i < kStepsHeld && from + i < program.stepCount; i += kThreads)
      block.steps[i] = program.steps[from + i];
    if (threadIdx.x == 0) block.heldFrom = from;
    __syncthreads();
  }
  return block.steps[number - block.heldFrom];
}

inline constexpr uint32_t kIterationsBetweenTells = 16;  // while nothing is waited for long

template <class Protocol, class Arithmetic>
__device__ bool runSteps(Block& block) {
  for (uint32_t iteration = 0; iteration < block.iterations; ++iteration) {
    if (threadIdx.x == 0 && iteration > 0) {
      storeShared(&block.iteration, iteration);
      if (iteration % kIterationsBetweenTells == 0 || peekShared(&block.waitedLong) != 0)
        tellProgress(block, iteration, 0);
    }
    for (uint32_t s = 0; s < block.work.program.stepCount; ++s) {
      const schedule::Step& step = stepAt(block, s);
      const size_t round = kernels::roundOf(step, iteration);
      if (round < block.rounds && !runStep<Protocol, Arithmetic>(block, step, round)) return false;
    }
  }
  return true;
}

// As on the host (Lane::tookAll): where each pair of ranks has a count of its own, a part that one sends and the other
// does not expect meets no step that would look at it. What has come of it by now is found here, what comes later by
// the next call that uses the link. False: there is trouble, the block ends.
__device__ inline bool tookAll(Block& block) {
  const kernels::Layout& layout = block.work.layout;
  if (layout.inputCounts == nullptr && layout.outputCounts == nullptr) return true;
  __syncthreads();  // the ends' counters are those after the last step
  bool foundMore = false;
  for (uint32_t i = threadIdx.x; i < block.work.program.inCount; i += kThreads) {
    const End& end = block.ins[i];
    // Acquire: as in awaitPosted.
    if (loadAcquire(sequenceOf(end.fifo, end.passed)) != end.passed + 1) continue;
    const link::Said said = readSaid(headerOf(end));
    const bool isOfLater = static_cast<int32_t>(said.fingerprint.operation - block.fingerprint.operation) > 0;
    if (!isOfLater && !matches(block, said, block.work.program.inPeers[i], 0)) foundMore = true;
  }
  return __syncthreads_or(foundMore) == 0;
}

}  // namespace tutti::cuda

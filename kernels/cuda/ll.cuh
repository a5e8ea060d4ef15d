// The protocol LL: every 4 bytes of data travel with a flag that says which slot they belong to, so a reader needs no
// fence and no second trip: what carries the right flag has arrived. The flag is the low 32 bits of the slot's number
// + 1. They wrap around, so twice in their turn, in its middle and at its end, the sender fills every slot up to its
// end. No line then keeps a flag for a whole turn, to look new when it comes again; once would not do, since the
// filling itself leaves flags behind.
#pragma once
#include "kernels/cuda/move.cuh"

namespace tutti::cuda {

struct LLProtocol {
  static constexpr Protocol kProtocol = Protocol::kLL;
  static constexpr Grain kGrain = rowOf(kProtocol).grain;

  // False: there is trouble.
  template <class Math>
  static __device__ bool move(Block& block, const schedule::Step& step, const Run& run, const Reduction& reduction) {
    const uint32_t operands = step.fromCount + step.toCount;
    for (uint32_t at = threadIdx.x * 8; at < run.bytes; at += kThreads * 8) {
      uint64_t word;
      if (!load(block, 0, run, at, word)) return false;
      auto group = Math::load(reduction, word, 0);
      for (uint32_t source = 1; source < step.fromCount; ++source) {
        if (!load(block, source, run, at, word)) return false;
        Math::fold(reduction, group, Math::load(reduction, word, static_cast<int>(source)));
      }
      word = Math::template store<uint64_t>(reduction, group);
      for (uint32_t d = step.fromCount; d < operands; ++d) store(block, block.places[d], run, at, word);
    }
    return true;
  }

  // After the last run of the slot of operand i, which filled so many grains of it.
  static __device__ void endSlot(Block& block, uint32_t i, uint32_t grains) {
    const Place& place = block.places[i];
    const uint32_t flag = flagOf(block, place);
    const auto half = static_cast<uint32_t>(block.work.seat.llFlagMask >> 1);
    if ((flag & half) <= half - place.depth) return;
    for (uint32_t line = grains + threadIdx.x; line < place.slotBytes / kGrain.bytes; line += kThreads)
      storeLine(place.base + line * kGrain.bytes, {0, flag, 0, flag});
  }

 private:
  static __device__ uint32_t flagOf(const Block& block, const Place& place) {
    return static_cast<uint32_t>((place.number + 1) & block.work.seat.llFlagMask);
  }

  static __device__ bool load(Block& block, uint32_t source, const Run& run, uint32_t at, uint64_t& word) {
    const Place& place = block.places[source];
    const std::byte* const from = placeOf(place, run, kGrain);
    if (place.kind != PlaceKind::kSlot) {
      word = loadBytes(from + at, run.bytes - at);
      return true;
    }
    const uint32_t flag = flagOf(block, place);
    SpinWait patience(block, place.peer);
    for (;;) {
      const LLLine line = loadLine(from + at / kGrain.payload * kGrain.bytes);
      if (line.flag1 == flag && line.flag2 == flag) {
        word = line.data1 | static_cast<uint64_t>(line.data2) << 32;
        return true;
      }
      if (!patience.goesOn()) return false;
    }
  }

  static __device__ void store(const Block& block, const Place& place, const Run& run, uint32_t at, uint64_t word) {
    std::byte* const to = placeOf(place, run, kGrain);
    if (place.kind != PlaceKind::kSlot) return storeBytes(to + at, word, run.bytes - at);
    const uint32_t flag = flagOf(block, place);
    storeLine(to + at / kGrain.payload * kGrain.bytes,
              {static_cast<uint32_t>(word), flag, static_cast<uint32_t>(word >> 32), flag});
  }
};

}  // namespace tutti::cuda

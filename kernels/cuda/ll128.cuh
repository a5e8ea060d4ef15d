// The protocol LL128: a line of 128 bytes carries 120 of data and an 8-byte flag, the slot's number + 1. Eight threads
// have a line, 16 bytes each; the last one's upper half is the flag. The link moves a line as a whole, so a reader that
// finds the flag has the data: one trip, and 15/16 of the bandwidth. A warp works on four lines at a time.
#pragma once
#include <algorithm>

#include "kernels/cuda/move.cuh"

namespace tutti::cuda {

struct LL128Protocol {
  static constexpr Protocol kProtocol = Protocol::kLL128;
  static constexpr Grain kGrain = rowOf(kProtocol).grain;

  // False: there is trouble.
  template <class Math>
  static __device__ bool move(Block& block, const schedule::Step& step, const Run& run, const Reduction& reduction) {
    const uint32_t grains = (run.bytes + kGrain.payload - 1) / kGrain.payload;
    // Whole warps go through this loop together: the loads and stores of lines are theirs.
    for (uint32_t grain = threadIdx.x / 32; grain < grains; grain += kThreads / 32) {
      Pack pack;
      if (!load(block, 0, run, grain, pack)) return false;
      auto group = Math::load(reduction, pack, 0);
      for (uint32_t source = 1; source < step.fromCount; ++source) {
        if (!load(block, source, run, grain, pack)) return false;
        Math::fold(reduction, group, Math::load(reduction, pack, static_cast<int>(source)));
      }
      pack = Math::template store<Pack>(reduction, group);
      for (uint32_t d = step.fromCount; d < step.fromCount + step.toCount; ++d)
        store(block.places[d], run, grain, pack);
    }
    return true;
  }

  static __device__ void endSlot(Block&, uint32_t, uint32_t) {}

 private:
  static __device__ uint32_t lane() { return threadIdx.x % 32; }
  static __device__ bool hasFlag() { return lane() % 8 == 7; }
  // This lane's bytes: where they begin in the run, and how many there are.
  static __device__ uint32_t begin(uint32_t grain) {
    return grain * kGrain.payload + lane() / 8 * 120 + lane() % 8 * 16;
  }
  static __device__ uint32_t count(uint32_t at, const Run& run) {
    const uint32_t mine = hasFlag() ? 8 : 16;
    return at >= run.bytes ? 0 : std::min(mine, run.bytes - at);
  }
  static __device__ std::byte* lineOf(const Place& place, const Run& run, uint32_t grain) {
    return placeOf(place, run, kGrain) + grain * kGrain.bytes + lane() * 16;
  }

  static __device__ bool load(Block& block, uint32_t source, const Run& run, uint32_t grain, Pack& pack) {
    const Place& place = block.places[source];
    if (place.kind == PlaceKind::kSlot) return loadLines(block, place, lineOf(place, run, grain), pack);
    const uint32_t at = begin(grain), bytes = count(at, run);
    const std::byte* const from = placeOf(place, run, kGrain) + at;
    pack.low = loadBytes(from, bytes);
    pack.high = bytes > 8 ? loadBytes(from + 8, bytes - 8) : 0;
    return true;
  }

  // The lanes of a warp wait, and give up, together. A line is stored as a whole, but its lanes' loads may be made one
  // after the other: what came with the first look at the flag may be older than the flag. So it is loaded again.
  static __device__ bool loadLines(Block& block, const Place& place, const std::byte* from, Pack& pack) {
    SpinWait patience(block, place.peer);
    for (;;) {
      pack = loadLine128(from);
      if (__all_sync(0xffffffff, !hasFlag() || pack.high == place.number + 1)) {
        pack = loadLine128(from);
        return true;
      }
      if (__any_sync(0xffffffff, !patience.goesOn())) return false;
    }
  }

  static __device__ void store(const Place& place, const Run& run, uint32_t grain, Pack pack) {
    if (place.kind == PlaceKind::kSlot) {
      if (hasFlag()) pack.high = place.number + 1;
      __syncwarp();  // one store of the whole warp: lanes that came apart would store parts of the line
      return storeLine128(lineOf(place, run, grain), pack);
    }
    const uint32_t at = begin(grain), bytes = count(at, run);
    std::byte* const to = placeOf(place, run, kGrain) + at;
    storeBytes(to, pack.low, bytes);
    if (bytes > 8) storeBytes(to + 8, pack.high, bytes - 8);
  }
};

}  // namespace tutti::cuda

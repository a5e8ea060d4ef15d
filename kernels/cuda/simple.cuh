// The protocol Simple: a slot is plain memory, and its header says when it is full.
#pragma once
#include <algorithm>

#include "kernels/cuda/move.cuh"

namespace tutti::cuda {

struct SimpleProtocol {
  static constexpr Protocol kProtocol = Protocol::kSimple;
  static constexpr Grain kGrain = rowOf(kProtocol).grain;

  // True: nothing that it reads has to be waited for.
  template <class Math>
  static __device__ bool move(Block& block, const schedule::Step& step, const Run& run, const Reduction& reduction) {
    const uint32_t operands = step.fromCount + step.toCount;
    const auto address = [&](uint32_t i) { return placeOf(block.places[i], run, kGrain); };
    const uintptr_t first = reinterpret_cast<uintptr_t>(address(0));
    uintptr_t apart = 0;  // the bits of alignment in which the operands differ
    for (uint32_t i = 1; i < operands; ++i) apart |= reinterpret_cast<uintptr_t>(address(i)) ^ first;
    // Also where all lie alike, but not at multiples of an element: no pack then holds whole elements.
    if (apart % 16 != 0 || first % sizeof(typename Math::Storage) != 0) {
      narrow<Math>(address, step, reduction, 0, run.bytes, first | apart);
      return true;
    }
    // Up to the first whole pack, the packs, and the rest.
    const uint32_t head = std::min(static_cast<uint32_t>(-first % 16), run.bytes);
    const uint32_t body = (run.bytes - head) / 16 * 16;
    narrow<Math>(address, step, reduction, 0, head, first);
    words<Math, Pack, Math::kDepth>(address, step, reduction, head, head + body);
    narrow<Math>(address, step, reduction, head + body, run.bytes, first);
    return true;
  }

 private:
  // Words as wide as all operands are aligned to; those of arithmetic as wide as an element.
  template <class Math, class Address>
  static __device__ void narrow(Address address, const schedule::Step& step, const Reduction& reduction, uint32_t from,
                                uint32_t to, uintptr_t misaligned) {
    using Storage = typename Math::Storage;
    if (misaligned % sizeof(Storage) != 0) return bytewise<Math>(address, step, reduction, from, to);
    if constexpr (Math::kCopies) {
      const uintptr_t bits = misaligned | from | to;
      if (bits % 8 == 0) return words<Math, uint64_t, 1>(address, step, reduction, from, to);
      if (bits % 4 == 0) return words<Math, uint32_t, 1>(address, step, reduction, from, to);
      if (bits % 2 == 0) return words<Math, uint16_t, 1>(address, step, reduction, from, to);
    }
    words<Math, Storage, 1>(address, step, reduction, from, to);
  }

  // Elements that do not lie at multiples of their size.
  template <class Math, class Address>
  static __device__ void bytewise(Address address, const schedule::Step& step, const Reduction& reduction,
                                  uint32_t from, uint32_t to) {
    using Storage = typename Math::Storage;
    for (uint32_t at = from + threadIdx.x * sizeof(Storage); at < to; at += kThreads * sizeof(Storage)) {
      const auto load = [&](uint32_t source) {
        const auto element = elementOf<Storage>(loadBytes(address(source) + at, sizeof(Storage)));
        return Math::load(reduction, element, static_cast<int>(source));
      };
      auto group = load(0);
      for (uint32_t source = 1; source < step.fromCount; ++source) Math::fold(reduction, group, load(source));
      const Storage element = Math::template store<Storage>(reduction, group);
      for (uint32_t d = step.fromCount; d < step.fromCount + step.toCount; ++d)
        storeBytes(address(d) + at, bitsOf(element), sizeof(Storage));
    }
  }

  // Bytes [from, to) of the run, a multiple of the word. Every thread takes `kDeep` words at a time, so that the loads
  // of one source are all under way before the first is needed.
  template <class Math, class Word, uint32_t kDeep, class Address>
  static __device__ void words(Address address, const schedule::Step& step, const Reduction& reduction, uint32_t from,
                               uint32_t to) {
    constexpr uint32_t kStride = kThreads * sizeof(Word);
    typename Math::template UnpackedOf<Word> groups[kDeep];
    for (uint32_t at = from + threadIdx.x * sizeof(Word); at < to; at += kDeep * kStride) {
      const auto load = [&](uint32_t source, auto take) {
        const std::byte* const base = address(source);
        Word word[kDeep];
#pragma unroll
        for (uint32_t u = 0; u < kDeep; ++u)
          if (at + u * kStride < to) word[u] = *reinterpret_cast<const Word*>(base + at + u * kStride);
#pragma unroll
        for (uint32_t u = 0; u < kDeep; ++u)
          if (at + u * kStride < to) take(u, Math::load(reduction, word[u], static_cast<int>(source)));
      };
      load(0, [&](uint32_t u, const auto& group) { groups[u] = group; });
      for (uint32_t source = 1; source < step.fromCount; ++source)
        load(source, [&](uint32_t u, const auto& group) { Math::fold(reduction, groups[u], group); });
#pragma unroll
      for (uint32_t u = 0; u < kDeep; ++u) {
        if (at + u * kStride >= to) continue;
        const Word word = Math::template store<Word>(reduction, groups[u]);
        for (uint32_t d = step.fromCount; d < step.fromCount + step.toCount; ++d)
          *reinterpret_cast<Word*>(address(d) + at + u * kStride) = word;
      }
    }
  }
};

}  // namespace tutti::cuda

// The arithmetic of a reduction over words of 8 or 16 bytes: a group of elements is loaded into accumulators, others
// are folded into it, and it is rounded once when it is stored. The bits are those of the host's kernels
// (kernels/element.h).
#pragma once
#include <cstring>
#include <utility>

#include "kernels/cuda/platform.cuh"
#include "kernels/element.h"

namespace tutti::cuda {

// What one run of elements is to become: the same for every thread.
struct Reduction {
  kernels::Fold fold = kernels::Fold::kSum;
  uint32_t divisor = 1;  // of the result
  uint64_t factor = 0;   // of the scaled source: a value of the type, in the low bytes
  int scaledSource = -1;
};

// Elements of one word in the type that they are accumulated in.
template <class Element, class Word>
struct Unpacked {
  static constexpr uint32_t kElements = sizeof(Word) / sizeof(typename Element::Storage);
  typename Element::Accumulator values[kElements];
};

template <class Element, class Word>
__device__ inline Unpacked<Element, Word> unpack(const Word& word) {
  typename Element::Storage stored[Unpacked<Element, Word>::kElements];
  memcpy(stored, &word, sizeof word);
  Unpacked<Element, Word> group;
#pragma unroll
  for (uint32_t i = 0; i < group.kElements; ++i) group.values[i] = Element::load(stored[i]);
  return group;
}

template <class Element, class Word>
__device__ inline Word pack(const Unpacked<Element, Word>& group) {
  typename Element::Storage stored[Unpacked<Element, Word>::kElements];
#pragma unroll
  for (uint32_t i = 0; i < group.kElements; ++i) stored[i] = Element::store(group.values[i]);
  Word word;
  memcpy(&word, stored, sizeof word);
  return word;
}

// Bits as they are: one source, and nothing to do to it.
struct CopyMath {
  static constexpr bool kCopies = true;
  static constexpr uint32_t kDepth = 4;  // words that a thread has under way
  using Storage = uint8_t;
  template <class Word>
  using UnpackedOf = Word;
  template <class Word>
  static __device__ Word load(const Reduction&, const Word& word, int) {
    return word;
  }
  template <class Word>
  static __device__ void fold(const Reduction&, Word&, const Word&) {}
  template <class Word>
  static __device__ Word store(const Reduction&, const Word& word) {
    return word;
  }
};

// The hot path: a sum, or an average, of a floating-point type.
template <class Element>
struct SumMath {
  static constexpr bool kCopies = false;
  // Enough to fill the memory's pipe, few enough to stay in registers.
  static constexpr uint32_t kDepth = 4;
  using Storage = typename Element::Storage;
  template <class Word>
  using UnpackedOf = Unpacked<Element, Word>;
  template <class Word>
  static __device__ UnpackedOf<Word> load(const Reduction&, const Word& word, int) {
    return unpack<Element>(word);
  }
  template <class Word>
  static __device__ void fold(const Reduction&, Unpacked<Element, Word>& sum, const Unpacked<Element, Word>& more) {
#pragma unroll
    for (uint32_t i = 0; i < sum.kElements; ++i) sum.values[i] += more.values[i];
  }
  template <class Word>
  static __device__ Word store(const Reduction& reduction, Unpacked<Element, Word> group) {
    if (reduction.divisor > 1) {
#pragma unroll
      for (uint32_t i = 0; i < group.kElements; ++i)
        group.values[i] /= static_cast<typename Element::Accumulator>(reduction.divisor);
    }
    return pack<Element, Word>(group);
  }
};

// Any type, any fold: the operator is looked up for each word. `Ordered` tells signed integers' order.
template <class Element, class Ordered = Element>
struct AnyMath {
  static constexpr bool kCopies = false;
  static constexpr uint32_t kDepth = 1;
  using Storage = typename Element::Storage;
  template <class Word>
  using UnpackedOf = Unpacked<Element, Word>;
  using Accumulator = typename Element::Accumulator;
  using OrderedAccumulator = typename Ordered::Accumulator;

  template <class Word>
  static __device__ UnpackedOf<Word> load(const Reduction& reduction, const Word& word, int source) {
    UnpackedOf<Word> group = unpack<Element>(word);
    if (source != reduction.scaledSource) return group;
    typename Element::Storage stored;
    memcpy(&stored, &reduction.factor, sizeof stored);
    const Accumulator factor = Element::load(stored);
    for (uint32_t i = 0; i < group.kElements; ++i) group.values[i] = kernels::scaled<Element>(group.values[i], factor);
    return group;
  }

  static __device__ Accumulator apply(kernels::Fold fold, Accumulator a, Accumulator b) {
    const auto x = static_cast<OrderedAccumulator>(a), y = static_cast<OrderedAccumulator>(b);
    switch (fold) {
      case kernels::Fold::kProd:
        return kernels::apply<kernels::Fold::kProd>(a, b);
      case kernels::Fold::kMax:
        return static_cast<Accumulator>(kernels::apply<kernels::Fold::kMax>(x, y));
      case kernels::Fold::kMin:
        return static_cast<Accumulator>(kernels::apply<kernels::Fold::kMin>(x, y));
      case kernels::Fold::kBitAnd:
        return applyBits<kernels::Fold::kBitAnd>(a, b);
      case kernels::Fold::kBitOr:
        return applyBits<kernels::Fold::kBitOr>(a, b);
      case kernels::Fold::kBitXor:
        return applyBits<kernels::Fold::kBitXor>(a, b);
      default:
        return kernels::apply<kernels::Fold::kSum>(a, b);
    }
  }
  // Floats never come here.
  template <kernels::Fold kFold>
  static __device__ Accumulator applyBits(Accumulator a, Accumulator b) {
    if constexpr (std::is_integral_v<Accumulator>) return kernels::apply<kFold>(a, b);
    return a;
  }
  template <class Word>
  static __device__ void fold(const Reduction& reduction, Unpacked<Element, Word>& result,
                              const Unpacked<Element, Word>& more) {
    for (uint32_t i = 0; i < result.kElements; ++i)
      result.values[i] = apply(reduction.fold, result.values[i], more.values[i]);
  }

  // Floats are divided before they are rounded, integers as values of their type.
  static __device__ Accumulator quotient(Accumulator value, uint32_t divisor) {
    if constexpr (std::is_floating_point_v<Accumulator>)
      return value / static_cast<Accumulator>(divisor);
    else
      return static_cast<Accumulator>(kernels::divide(static_cast<OrderedAccumulator>(value), divisor));
  }
  template <class Word>
  static __device__ Word store(const Reduction& reduction, Unpacked<Element, Word> group) {
    if (reduction.divisor > 1)
      for (uint32_t i = 0; i < group.kElements; ++i) group.values[i] = quotient(group.values[i], reduction.divisor);
    return pack<Element, Word>(group);
  }
};

template <DataType kType>
using AnyMathOf = AnyMath<typename kernels::ElementOf<kType>::Element, typename kernels::ElementOf<kType>::Ordered>;

// Calls visit(Math()) with the general arithmetic of that type.
template <class Visit, int... kTypes>
__device__ inline void withAnyMath(DataType type, Visit visit, std::integer_sequence<int, kTypes...>) {
  ((type == static_cast<DataType>(kTypes) ? visit(AnyMathOf<static_cast<DataType>(kTypes)>()) : void()), ...);
}
template <class Visit>
__device__ inline void withAnyMath(DataType type, Visit visit) {
  withAnyMath(type, visit, std::make_integer_sequence<int, kDataTypes>());
}

}  // namespace tutti::cuda

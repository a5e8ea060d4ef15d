// Groups of elements in vector registers: how each type is loaded, accumulated and stored. Compiled once a target.
// The arithmetic is that of fold_scalar.cc and convert.h, step by step, so that the bits agree.
// clang-format off: the guard below is Highway's idiom for a header that is read once per target.
#if defined(TUTTI_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_LANES_INL_H_
#undef TUTTI_KERNELS_LANES_INL_H_
#else
#define TUTTI_KERNELS_LANES_INL_H_
#endif
// clang-format on

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "kernels/convert.h"
#include "kernels/host/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A few vectors that are treated alike. (A plain array would be kept in memory by some compilers.)
template <class V, int kParts>
struct Pack {
  V head;
  Pack<V, kParts - 1> rest;
};
template <class V>
struct Pack<V, 1> {
  V head;
};

template <class Op, class D, class V, int kParts>
HWY_INLINE Pack<V, kParts> combinePacks(D d, const Pack<V, kParts>& a, const Pack<V, kParts>& b) {
  if constexpr (kParts == 1) {
    return {Op::apply(d, a.head, b.head)};
  } else {
    return {Op::apply(d, a.head, b.head), combinePacks<Op>(d, a.rest, b.rest)};
  }
}

template <class V, int kParts>
HWY_INLINE Pack<V, kParts> repeated(V value) {
  if constexpr (kParts == 1) {
    return {value};
  } else {
    return {value, repeated<V, kParts - 1>(value)};
  }
}

// Highway multiplies no bytes, so they go two by two as 16-bit lanes.
template <class D>
HWY_INLINE hn::Vec<D> wrappingProduct(D d, hn::Vec<D> a, hn::Vec<D> b) {
  if constexpr (sizeof(hn::TFromD<D>) > 1) {
    return hn::Mul(a, b);
  } else {
    const hn::RepartitionToWide<D> wide;
    const auto evenA = hn::BitCast(wide, a), evenB = hn::BitCast(wide, b);
    const auto even = hn::And(hn::Mul(evenA, evenB), hn::Set(wide, 0xff));
    const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(evenA), hn::ShiftRight<8>(evenB)));
    return hn::BitCast(d, hn::Or(even, odd));
  }
}

struct Sum {
  template <class D, class V>
  static HWY_INLINE V apply(D, V sum, V value) {
    return hn::Add(sum, value);
  }
};

struct Product {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V product, V value) {
    return wrappingProduct(d, product, value);
  }
};

struct Quotient {
  template <class D, class V>
  static HWY_INLINE V apply(D, V value, V divisor) {
    return hn::Div(value, divisor);
  }
};

struct Larger {
  template <class D, class V>
  static HWY_INLINE V apply(D, V best, V value) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>())
      return hn::IfThenElse(hn::Or(hn::Lt(best, value), hn::IsNaN(value)), value, best);
    else
      return hn::Max(best, value);
  }
};

struct Smaller {
  template <class D, class V>
  static HWY_INLINE V apply(D, V best, V value) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>())
      return hn::IfThenElse(hn::Or(hn::Lt(value, best), hn::IsNaN(value)), value, best);
    else
      return hn::Min(best, value);
  }
};

struct BitAnd {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::And(a, b);
  }
};

struct BitOr {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Or(a, b);
  }
};

struct BitXor {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Xor(a, b);
  }
};

// Of each type: how it is loaded, accumulated, encoded and stored, and what is `rounded`, as if stored and loaded
// again.

// Types that accumulate as they are stored.
template <class T>
struct PlainLanes {
  using D = hn::ScalableTag<T>;
  using Accumulators = Pack<hn::Vec<D>, 1>;
  using Stored = hn::Vec<D>;

  static HWY_INLINE size_t bytes() { return hn::Lanes(D()) * sizeof(T); }
  static HWY_INLINE Accumulators load(const std::byte* from) {
    return {hn::LoadU(D(), reinterpret_cast<const T*>(from))};
  }
  static HWY_INLINE Stored encode(const Accumulators& group) {
    if constexpr (hwy::IsFloat<T>()) {
      return hn::IfThenElse(hn::Eq(group.head, group.head), group.head,
                            hn::Set(D(), canonical(std::numeric_limits<T>::quiet_NaN())));
    } else {
      return group.head;
    }
  }
  static HWY_INLINE Accumulators rounded(const Accumulators& group) { return group; }
  static HWY_INLINE void store(const Stored& stored, std::byte* to) {
    hn::StoreU(stored, D(), reinterpret_cast<T*>(to));
  }
  static T scalar(uint64_t low) {
    T value;
    std::memcpy(&value, &low, sizeof value);
    return value;
  }
};

// Bytes that are true unless they are 0: 0 or 1 in a register.
struct TruthLanes : PlainLanes<uint8_t> {
  static HWY_INLINE Accumulators load(const std::byte* from) {
    return {hn::Min(PlainLanes<uint8_t>::load(from).head, hn::Set(D(), 1))};
  }
  static uint8_t scalar(uint64_t low) { return static_cast<uint8_t>(low) != 0; }
};

// bfloat16 as 32-bit words of two elements each, which are converted where they stand: nothing moves between lanes.
struct Bfloat16Lanes {
  using D = FloatTag;
  using Accumulators = Pack<Floats, 2>;
  using Stored = Words;

  static HWY_INLINE Words high() { return hn::Set(WordTag(), 0xffff0000); }

  // The rounded value is in the upper half of each word, and the lower half is not cleared.
  static HWY_INLINE Words round(Floats value) {
    const WordTag words;
    const Words bits = hn::BitCast(words, value);
    const Words odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
    const Words rounded = hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7fff)));
    const auto isNumber = hn::RebindMask(words, hn::Eq(value, value));
    return hn::IfThenElse(isNumber, rounded, hn::Set(words, kFloatNan));
  }

  static HWY_INLINE size_t bytes() { return hn::Lanes(WordTag()) * 4; }
  static HWY_INLINE Accumulators load(const std::byte* from) {
    const Words both = hn::LoadU(WordTag(), reinterpret_cast<const uint32_t*>(from));
    return {hn::BitCast(FloatTag(), hn::ShiftLeft<16>(both)), {hn::BitCast(FloatTag(), hn::And(both, high()))}};
  }
  static HWY_INLINE Stored encode(const Accumulators& group) {
    return hn::Or(hn::ShiftRight<16>(round(group.head)), hn::And(round(group.rest.head), high()));
  }
  static HWY_INLINE Accumulators rounded(const Accumulators& group) {
    return {hn::BitCast(FloatTag(), hn::And(round(group.head), high())),
            {hn::BitCast(FloatTag(), hn::And(round(group.rest.head), high()))}};
  }
  static HWY_INLINE void store(const Stored& stored, std::byte* to) {
    hn::StoreU(stored, WordTag(), reinterpret_cast<uint32_t*>(to));
  }
  static float scalar(uint64_t low) { return decode<Bfloat16>(static_cast<uint16_t>(low)); }
};

// Where the hardware converts float16, to nearest even.
#undef TUTTI_NATIVE_FLOAT16
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || (HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_NEON)
#define TUTTI_NATIVE_FLOAT16 1
#else
#define TUTTI_NATIVE_FLOAT16 0
#endif

// float8, and float16 where nothing converts it: a group is of two vectors of floats.
template <class Format>
struct SmallLanes {
  using D = FloatTag;
  using Storage = typename Format::Storage;
  using Narrow = hn::Rebind<Storage, WordTag>;
  using Accumulators = Pack<Floats, 2>;
  using Stored = Pack<hn::Vec<Narrow>, 2>;

  static HWY_INLINE size_t lanes() { return hn::Lanes(WordTag()); }
  static HWY_INLINE size_t bytes() { return lanes() * 2 * sizeof(Storage); }
  static HWY_INLINE Accumulators load(const std::byte* from) {
    const auto* const stored = reinterpret_cast<const Storage*>(from);
    return {loadHalf(stored), {loadHalf(stored + lanes())}};
  }
  static HWY_INLINE Stored encode(const Accumulators& group) {
    return {encodeHalf(group.head), {encodeHalf(group.rest.head)}};
  }
  static HWY_INLINE Accumulators rounded(const Accumulators& group) {
    return {decodeWords<Format>(encodeWords<Format>(group.head)),
            {decodeWords<Format>(encodeWords<Format>(group.rest.head))}};
  }
  static HWY_INLINE void store(const Stored& stored, std::byte* to) {
    auto* const places = reinterpret_cast<Storage*>(to);
    hn::StoreU(stored.head, Narrow(), places);
    hn::StoreU(stored.rest.head, Narrow(), places + lanes());
  }
  static float scalar(uint64_t low) { return decode<Format>(static_cast<Storage>(low)); }

 private:
  static HWY_INLINE Floats loadHalf(const Storage* from) {
    return decodeWords<Format>(hn::PromoteTo(WordTag(), hn::LoadU(Narrow(), from)));
  }
  static HWY_INLINE hn::Vec<Narrow> encodeHalf(Floats value) {
    return hn::DemoteTo(Narrow(), hn::BitCast(hn::RebindToSigned<WordTag>(), encodeWords<Format>(value)));
  }
};

#if TUTTI_NATIVE_FLOAT16
struct Float16Lanes {
  using D = FloatTag;
  using Half = hn::Rebind<hwy::float16_t, FloatTag>;
  using Accumulators = Pack<Floats, 2>;
  using Stored = Pack<hn::Vec<Half>, 2>;

  static HWY_INLINE Floats loadHalf(const std::byte* from) {
    return hn::PromoteTo(FloatTag(), hn::LoadU(Half(), reinterpret_cast<const hwy::float16_t*>(from)));
  }
  static HWY_INLINE hn::Vec<Half> encodeHalf(Floats value) {
    const Floats nan = hn::BitCast(FloatTag(), hn::Set(WordTag(), kFloatNan));
    return hn::DemoteTo(Half(), hn::IfThenElse(hn::Eq(value, value), value, nan));
  }

  static HWY_INLINE size_t bytes() { return hn::Lanes(WordTag()) * 4; }
  static HWY_INLINE Accumulators load(const std::byte* from) {
    return {loadHalf(from), {loadHalf(from + bytes() / 2)}};
  }
  static HWY_INLINE Stored encode(const Accumulators& group) {
    return {encodeHalf(group.head), {encodeHalf(group.rest.head)}};
  }
  static HWY_INLINE Accumulators rounded(const Accumulators& group) {
    return {hn::PromoteTo(FloatTag(), encodeHalf(group.head)),
            {hn::PromoteTo(FloatTag(), encodeHalf(group.rest.head))}};
  }
  static HWY_INLINE void store(const Stored& stored, std::byte* to) {
    hn::StoreU(stored.head, Half(), reinterpret_cast<hwy::float16_t*>(to));
    hn::StoreU(stored.rest.head, Half(), reinterpret_cast<hwy::float16_t*>(to + bytes() / 2));
  }
  static float scalar(uint64_t low) { return decode<Float16>(static_cast<uint16_t>(low)); }
};

// float8 by way of float16, which holds all of its values, e4m3's as 256th parts: only bits move then.
template <class Format>
struct Float8Lanes {
  using D = FloatTag;
  using Pairs = hn::ScalableTag<uint16_t>;
  using Halves = hn::Rebind<uint16_t, FloatTag>;
  using Half = hn::Rebind<hwy::float16_t, FloatTag>;
  using Bytes = hn::Rebind<uint8_t, Pairs>;
  using Accumulators = Pack<Floats, 2>;
  using Stored = hn::Vec<Bytes>;
  static constexpr bool kIsE5m2 = Format::kMantissa == 2;
  // From where on all is alike: what has no room is infinity in float16 as well, or else the largest value.
  static constexpr float kMost = kIsE5m2 ? 65536.0f : decode<Format>(Format::kOverflow);

  static HWY_INLINE size_t bytes() { return hn::Lanes(Pairs()); }
  static HWY_INLINE Accumulators load(const std::byte* from) {
    const auto stored = hn::PromoteTo(Pairs(), hn::LoadU(Bytes(), reinterpret_cast<const uint8_t*>(from)));
    const auto halves = asFloat16(stored);
    return {toFloats(hn::BitCast(Half(), hn::LowerHalf(Halves(), halves))),
            {toFloats(hn::BitCast(Half(), hn::UpperHalf(Halves(), halves)))}};
  }
  static HWY_INLINE Stored encode(const Accumulators& group) {
    const auto low = hn::BitCast(Halves(), toFloat16(group.head));
    const auto high = hn::BitCast(Halves(), toFloat16(group.rest.head));
    const auto stored = asFloat8(hn::Combine(Pairs(), high, low));
    return hn::DemoteTo(Bytes(), hn::BitCast(hn::RebindToSigned<Pairs>(), stored));
  }
  static HWY_INLINE Accumulators rounded(const Accumulators& group) {
    return {toFloats(toFloat16(group.head)), {toFloats(toFloat16(group.rest.head))}};
  }
  static HWY_INLINE void store(const Stored& stored, std::byte* to) {
    hn::StoreU(stored, Bytes(), reinterpret_cast<uint8_t*>(to));
  }
  static float scalar(uint64_t low) { return decode<Format>(static_cast<uint8_t>(low)); }

 private:
  // Not every NaN stays the one that it was; those of results are all one.
  static HWY_INLINE hn::Vec<Pairs> asFloat16(hn::Vec<Pairs> stored) {
    if constexpr (kIsE5m2) {
      return hn::ShiftLeft<8>(stored);
    } else {
      const auto magnitude = hn::And(stored, hn::Set(Pairs(), 0x7f));
      const auto isNan = hn::VecFromMask(Pairs(), hn::Eq(magnitude, hn::Set(Pairs(), 0x7f)));
      // Twice the sign: it goes from bit 7 to bit 15, the rest from bit 0 to bit 7.
      const auto apart = hn::Add(stored, hn::And(stored, hn::Set(Pairs(), 0x80)));
      return hn::Or(hn::ShiftLeft<7>(apart), isNan);
    }
  }
  static HWY_INLINE hn::Vec<Pairs> asFloat8(hn::Vec<Pairs> halves) {
    if constexpr (kIsE5m2) return hn::ShiftRight<8>(halves);
    return hn::Or(hn::And(hn::ShiftRight<7>(halves), hn::Set(Pairs(), 0x7f)),
                  hn::And(hn::ShiftRight<8>(halves), hn::Set(Pairs(), 0x80)));
  }

  static HWY_INLINE Floats toFloats(hn::Vec<Half> half) {
    const Floats value = hn::PromoteTo(FloatTag(), half);
    if constexpr (kIsE5m2) return value;
    return hn::Mul(value, hn::Set(FloatTag(), 256.0f));
  }
  // Rounded as the format asks for, which is exact in float16: the adder rounds, to a number whose own step is the
  // format's at that exponent, or that of its subnormals.
  static HWY_INLINE hn::Vec<Half> toFloat16(Floats value) {
    const FloatTag floats;
    const WordTag words;
    const hn::RebindToSigned<WordTag> integers;
    const auto limit = hn::Set(integers, std::bit_cast<int32_t>(kMost));
    const auto least = hn::Set(integers, static_cast<int32_t>(Format::kSmallestNormalAsFloat));
    const Words bits = hn::BitCast(words, value);
    const Words positive = hn::And(bits, hn::Set(words, 0x7fffffff));
    const auto magnitude = hn::Min(hn::BitCast(integers, positive), limit);
    const auto exponent = hn::Max(hn::And(magnitude, hn::Set(integers, kFloatInfinity)), least);
    const Floats rounder = hn::BitCast(floats, hn::Add(exponent, hn::Set(integers, Format::kShift << 23)));
    Floats result = hn::Sub(hn::Add(hn::BitCast(floats, magnitude), rounder), rounder);
    if constexpr (!kIsE5m2) result = hn::Mul(result, hn::Set(floats, 1.0f / 256));
    result = hn::BitCast(floats, hn::Or(hn::BitCast(words, result), hn::Xor(bits, positive)));
    const Floats nan = hn::BitCast(floats, hn::Set(words, kFloatNan));
    return hn::DemoteTo(Half(), hn::IfThenElse(hn::Eq(value, value), result, nan));
  }
};
#endif

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target

// Vector code that converts float16 and float8 to float and back. Compiled once a target.
// It follows decode() and encode() of convert.h step by step, so that the bits agree.
// clang-format off: the guard below is Highway's idiom for a header that is read once per target.
#if defined(TUTTI_KERNELS_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_NARROW_INL_H_
#undef TUTTI_KERNELS_NARROW_INL_H_
#else
#define TUTTI_KERNELS_NARROW_INL_H_
#endif
// clang-format on

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/convert.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using WordTag = hn::ScalableTag<uint32_t>;
using Floats = hn::Vec<FloatTag>;
using Words = hn::Vec<WordTag>;

// Magnitudes have no sign bit, so the comparison of signed integers serves, which more machines have.
HWY_INLINE auto isBelow(Words magnitude, uint32_t bound) {
  const hn::RebindToSigned<WordTag> integers;
  const auto mask = hn::Lt(hn::BitCast(integers, magnitude), hn::Set(integers, static_cast<int32_t>(bound)));
  return hn::RebindMask(WordTag(), mask);
}

// Encoding and decoding of a narrow type in the low bits of 32-bit words.
template <class Format>
HWY_INLINE Floats decodeWords(Words stored) {
  const WordTag words;
  const FloatTag floats;
  const Words sign = hn::ShiftLeft<32 - Format::kBits>(hn::And(stored, hn::Set(words, Format::kSign)));
  const Words magnitude = hn::And(stored, hn::Set(words, Format::kSign - 1));
  const Words shifted = hn::ShiftLeft<Format::kShift>(magnitude);
  const auto signedMagnitude = hn::BitCast(hn::RebindToSigned<WordTag>(), magnitude);
  const Floats small = hn::Mul(hn::ConvertTo(floats, signedMagnitude), hn::Set(floats, Format::kSubnormalStep));
  Words result = hn::Add(shifted, hn::Set(words, Format::kRebias));
  result = hn::IfThenElse(isBelow(magnitude, Format::kSmallestNormal), hn::BitCast(words, small), result);
  if constexpr (Format::kHasInfinity) {
    const Words special = hn::Or(shifted, hn::Set(words, kFloatInfinity));
    result = hn::IfThenElse(isBelow(magnitude, Format::kOverflow), result, special);
  }
  result = hn::IfThenElse(hn::Eq(magnitude, hn::Set(words, Format::kNan)), hn::Set(words, kFloatNan), result);
  return hn::BitCast(floats, hn::Or(sign, result));
}

template <class Format>
HWY_INLINE Words encodeWords(Floats value) {
  const WordTag words;
  const FloatTag floats;
  const Words bits = hn::BitCast(words, value);
  const Words magnitude = hn::And(bits, hn::Set(words, 0x7fffffff));
  const Words sign = hn::ShiftRight<32 - Format::kBits>(hn::Xor(bits, magnitude));
  const Words rounder = hn::Set(words, Format::kRounderBits);
  const Floats sum = hn::Add(hn::BitCast(floats, magnitude), hn::BitCast(floats, rounder));
  const Words small = hn::Sub(hn::BitCast(words, sum), rounder);
  const Words odd = hn::And(hn::ShiftRight<Format::kShift>(magnitude), hn::Set(words, 1));
  const Words half = hn::Add(odd, hn::Set(words, (1u << (Format::kShift - 1)) - 1 - Format::kRebias));
  Words result = hn::ShiftRight<Format::kShift>(hn::Add(magnitude, half));
  result = hn::Min(result, hn::Set(words, Format::kOverflow));
  result = hn::IfThenElse(isBelow(magnitude, Format::kSmallestNormalAsFloat), small, result);
  result = hn::Or(sign, result);
  return hn::IfThenElse(isBelow(magnitude, kFloatInfinity + 1), result, hn::Set(words, Format::kNan));
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target

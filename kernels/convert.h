// Scalar conversions of the small floating-point types. The host's vector code follows the same steps, so the bits
// agree, and so do those of a GPU, which has instructions for some of them.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tutti::kernels {

// One of the formats narrower than float: `kMantissa` stored bits of mantissa, an exponent bias, and what overflow
// gives. In every format the NaN that results carry has all bits but the sign set, as on NVIDIA GPUs.
template <class StorageType, int kMantissaBits, int kExponentBias, uint32_t kLargest, bool kInfinity>
struct SmallFormat {
  using Storage = StorageType;
  static constexpr int kMantissa = kMantissaBits;
  static constexpr bool kHasInfinity = kInfinity;
  static constexpr int kBits = 8 * sizeof(Storage);
  static constexpr uint32_t kSign = 1u << (kBits - 1);
  static constexpr uint32_t kNan = kSign - 1;
  static constexpr uint32_t kOverflow = kLargest;  // infinity, or the largest finite value
  static constexpr uint32_t kSmallestNormal = 1u << kMantissa;
  static constexpr int kShift = 23 - kMantissa;  // between this mantissa and float's
  static constexpr uint32_t kRebias = (127u - kExponentBias) << 23;
  static constexpr uint32_t kSmallestNormalAsFloat = kRebias + (1u << 23);
  // The step between subnormals, 2^(1 - bias - mantissa), and the float whose own step is just that.
  static constexpr float kSubnormalStep = std::bit_cast<float>((128u - kExponentBias - kMantissa) << 23);
  static constexpr uint32_t kRounderBits = (128u - kExponentBias - kMantissa + 23u) << 23;
};

using Float16 = SmallFormat<uint16_t, 10, 15, 0x7c00, true>;
using Float8e5m2 = SmallFormat<uint8_t, 2, 15, 0x7c, true>;
using Float8e4m3 = SmallFormat<uint8_t, 3, 7, 0x7e, false>;
struct Bfloat16 {
  using Storage = uint16_t;
};

inline constexpr uint32_t kFloatInfinity = 0x7f800000;
inline constexpr uint32_t kFloatNan = 0x7fffffff;

template <class Format>
constexpr float decode(typename Format::Storage stored) noexcept {
  const uint32_t sign = uint32_t{stored & Format::kSign} << (32 - Format::kBits);
  const uint32_t magnitude = stored & ~Format::kSign;
  const uint32_t shifted = magnitude << Format::kShift;
  if (magnitude == Format::kNan) return std::bit_cast<float>(sign | kFloatNan);
  if (Format::kHasInfinity && magnitude >= Format::kOverflow)
    return std::bit_cast<float>(sign | kFloatInfinity | shifted);
  if (magnitude >= Format::kSmallestNormal) return std::bit_cast<float>(sign | (shifted + Format::kRebias));
  const float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * Format::kSubnormalStep;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
}

// Normal values are rounded by adding half a step to the bits (a carry moves into the exponent, as it should).
// Subnormals let the float adder round: the sum with kRounder has their step as its own last place.
template <class Format>
constexpr typename Format::Storage encode(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > kFloatInfinity) return Format::kNan;
  const uint32_t sign = (bits ^ magnitude) >> (32 - Format::kBits);
  if (magnitude < Format::kSmallestNormalAsFloat) {
    const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(Format::kRounderBits);
    return static_cast<typename Format::Storage>(sign | (std::bit_cast<uint32_t>(sum) - Format::kRounderBits));
  }
  const uint32_t half = (1u << (Format::kShift - 1)) - 1 + ((magnitude >> Format::kShift) & 1);
  const uint32_t rounded = (magnitude - Format::kRebias + half) >> Format::kShift;
  // A copy: code of a GPU can not refer to a constant of the host's (tests/gpu/ends_test.py).
  return static_cast<typename Format::Storage>(sign | std::min(rounded, uint32_t{Format::kOverflow}));
}

template <>
constexpr float decode<Bfloat16>(uint16_t stored) noexcept {
  return std::bit_cast<float>(uint32_t{stored} << 16);
}

template <>
constexpr uint16_t encode<Bfloat16>(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > kFloatInfinity) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// The same at any address, aligned or not.
template <class Format>
inline float decodeAt(const std::byte* array, size_t index) noexcept {
  typename Format::Storage stored;
  std::memcpy(&stored, array + index * sizeof stored, sizeof stored);
  return decode<Format>(stored);
}
template <class Format>
inline void encodeAt(std::byte* array, size_t index, float value) noexcept {
  const typename Format::Storage stored = encode<Format>(value);
  std::memcpy(array + index * sizeof stored, &stored, sizeof stored);
}

// The result of an operation in the element's own type: a NaN is made the one NaN that results carry. Which of two
// NaNs an addition passes on depends on how the compiler orders its operands; this makes the result independent of it.
constexpr float canonical(float value) noexcept { return value == value ? value : std::bit_cast<float>(kFloatNan); }
constexpr double canonical(double value) noexcept {
  return value == value ? value : std::bit_cast<double>(uint64_t{0x7fffffffffffffff});
}

}  // namespace tutti::kernels

// The host's reduction kernel: combine any number of sources, element by element, into any number of destinations.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "kernels/arithmetic.h"

namespace tutti::kernels {

// destinations[0…m) = op(sources[0], sources[1], … sources[k-1]), in that order, for `count` elements.
//
// k >= 1, m >= 1. Destinations may be equal to sources (in place) but not overlap them otherwise, nor each other. Any
// alignment. Allocates nothing, takes no lock; any thread.
// fp16, bf16 and fp8 accumulate in float and are rounded once, to nearest even, when stored; fp8 e4m3 saturates to its
// largest finite value and e5m2 overflows to infinity. float and double accumulate in their own type, integers wrap.
// Max and min return NaN if any source is NaN, and of zeros with different signs the earlier one. An average divides
// the complete sum: floats in their accumulator, before rounding; integers as type values, towards zero. One source and
// nothing to scale or divide is a memory copy; every other NaN result is the one with all bits but the sign set.
// The bits of the result depend on the values and their order alone, not on the machine's vector width.
// `scaledSource`: index of the source that is multiplied by `factor` (kPreMulSum), or -1. Products are values of the
// type: those of fp16, bf16 and fp8 are made in float and rounded before they are added, as if they came from a rank
// that had stored them.
// `around`: for each destination whether it is written around the caches (write_around.h). Null: none is. A source that
// is copied to itself is left alone.
void combine(const Arithmetic& arithmetic, std::byte* const* destinations, int destinationCount,
             const std::byte* const* sources, int sourceCount, size_t count, int scaledSource = -1,
             const bool* around = nullptr) noexcept;

// The sum of a few elements, as combine() makes it of these: for whoever asks once and adds often.
using TinySum = void(std::byte* const* destinations, int destinationCount, const std::byte* const* sources,
                     int sourceCount, size_t count);
// Null: combine() does it. A divisor is left out of account.
TinySum* tinySumOf(const Arithmetic& arithmetic, size_t count) noexcept;
// The same of two sources, into one destination.
using TinyPairSum = void(std::byte* to, const std::byte* a, const std::byte* b, size_t count);
TinyPairSum* tinyPairSumOf(const Arithmetic& arithmetic, size_t count) noexcept;

// One number at a time, for tests and micro-benchmarks. Round to nearest even; NaN becomes the NaN of combine(). Any
// thread.
float toFloat(DataType type, uint32_t bits) noexcept;  // of a type that is narrower than float
uint32_t fromFloat(DataType type, float value) noexcept;

}  // namespace tutti::kernels

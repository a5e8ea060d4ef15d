// Whole numbers divided towards zero, a vector at a time. Compiled once a target. The values are those of divide() in
// element.h: there the quotient of two numbers that a floating-point type holds exactly is never rounded up to the next
// whole number. Here it is a product with a reciprocal that is a little too large: by less than any quotient lacks to
// the next whole number, so that what divides without rest is not rounded down, and nothing else up.
// clang-format off: the guard below is Highway's idiom for a header that is read once per target.
#if defined(TUTTI_KERNELS_DIVIDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TUTTI_KERNELS_DIVIDE_INL_H_
#undef TUTTI_KERNELS_DIVIDE_INL_H_
#else
#define TUTTI_KERNELS_DIVIDE_INL_H_
#endif
// clang-format on

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/element.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Of up to 32 bits. float is exact for 16 of them, double for 32; a quotient lacks at least 1 / value of itself to the
// next whole number.
template <class T>
struct Quotients {
  using Real = std::conditional_t<(sizeof(T) < 4), float, double>;
  using Reals = hn::ScalableTag<Real>;
  using Wholes = hn::Rebind<int32_t, Reals>;
  using Narrow = hn::Rebind<T, Reals>;
  static constexpr double kTooLarge = sizeof(T) < 4 ? 1 + 1.0 / (1 << 20) : 1 + 1.0 / (uint64_t{1} << 48);

  static HWY_INLINE size_t lanes() { return hn::Lanes(Reals()); }

  static HWY_INLINE hn::Vec<Reals> load(const T* from) {
    const auto stored = hn::LoadU(Narrow(), from);
    if constexpr (std::is_same_v<T, uint32_t>) {
      const auto shifted = hn::Xor(stored, hn::Set(Narrow(), uint32_t{1} << 31));
      return hn::Add(hn::PromoteTo(Reals(), hn::BitCast(Wholes(), shifted)), hn::Set(Reals(), 2147483648.0));
    } else if constexpr (sizeof(T) == 4) {
      return hn::PromoteTo(Reals(), stored);
    } else {
      return hn::ConvertTo(Reals(), hn::PromoteTo(Wholes(), stored));
    }
  }

  // No quotient is as large as what signed integers hold: a divisor is 2 at least.
  static HWY_INLINE void store(hn::Vec<Reals> quotients, T* to) {
    if constexpr (sizeof(T) == 4) {
      hn::StoreU(hn::DemoteTo(Wholes(), quotients), Wholes(), reinterpret_cast<int32_t*>(to));
    } else {
      hn::StoreU(hn::DemoteTo(Narrow(), hn::ConvertTo(Wholes(), quotients)), Narrow(), to);
    }
  }

  // Whole vectors; returns how many elements those are.
  static size_t divideVectors(std::byte* elements, size_t count, uint32_t divisor) {
    const auto reciprocal = hn::Set(Reals(), static_cast<Real>(kTooLarge / divisor));
    size_t i = 0;
    for (; count - i >= lanes(); i += lanes()) {
      T* const place = reinterpret_cast<T*>(elements + i * sizeof(T));
      store(hn::Mul(load(place), reciprocal), place);
    }
    return i;
  }
};

template <class T>
void divideArray(std::byte* elements, size_t count, uint32_t divisor) {
  size_t i = 0;
  if constexpr (sizeof(T) <= 4) i = Quotients<T>::divideVectors(elements, count, divisor);
  for (; i < count; ++i) {
    T value;
    std::memcpy(&value, elements + i * sizeof value, sizeof value);
    value = divide(value, divisor);
    std::memcpy(elements + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target

#include "kernels/convert.h"

#include "kernels/element.h"
#include "kernels/host/combine.h"

namespace tutti::kernels {
namespace {

template <class Element>
constexpr bool kIsNarrow = std::is_same_v<typename Element::Accumulator, float> &&
                           sizeof(typename Element::Storage) < 4;

template <class Element>
float toFloatFrom(uint32_t bits) {
  if constexpr (kIsNarrow<Element>) return Element::load(static_cast<typename Element::Storage>(bits));
  return std::bit_cast<float>(bits);
}

template <class Element>
uint32_t fromFloatTo(float value) {
  if constexpr (kIsNarrow<Element>) return Element::store(value);
  return std::bit_cast<uint32_t>(value);
}

constexpr auto kToFloat = forEveryType([](auto of) { return &toFloatFrom<typename decltype(of)::Element>; });
constexpr auto kFromFloat = forEveryType([](auto of) { return &fromFloatTo<typename decltype(of)::Element>; });

}  // namespace

float toFloat(DataType type, uint32_t bits) noexcept { return kToFloat[type](bits); }
uint32_t fromFloat(DataType type, float value) noexcept { return kFromFloat[type](value); }

}  // namespace tutti::kernels

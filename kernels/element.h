// The arithmetic of one element, by type and operator: what every kernel, of the host and of a GPU, agrees with bit for
// bit.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/types.h"
#include "kernels/convert.h"

namespace tutti::kernels {

// The folds that kernels implement. An average is a sum with a divisor; a pre-multiplied sum scales one source.
enum class Fold : uint8_t { kSum, kProd, kMax, kMin, kScaledSum, kBitAnd, kBitOr, kBitXor };
inline constexpr int kFolds = 8;

constexpr Fold foldOf(ReduceOp op, bool scaled) noexcept {
  switch (op) {
    case ReduceOp::kProd:
      return Fold::kProd;
    case ReduceOp::kMax:
      return Fold::kMax;
    case ReduceOp::kMin:
      return Fold::kMin;
    case ReduceOp::kBitAnd:
      return Fold::kBitAnd;
    case ReduceOp::kBitOr:
      return Fold::kBitOr;
    case ReduceOp::kBitXor:
      return Fold::kBitXor;
    default:
      return scaled ? Fold::kScaledSum : Fold::kSum;
  }
}

// How an element is stored and in which type it is accumulated. Integers accumulate as unsigned: they wrap.
template <class T>
struct Integer {
  using Storage = T;
  using Accumulator = T;
  static constexpr T load(T stored) { return stored; }
  static constexpr T store(T value) { return value; }
};

// A byte, which is true unless it is 0. Of truth values every operator is a logical one, and that is what C++ makes of
// bool's arithmetic: a sum is "or", a product "and".
struct Truth {
  using Storage = uint8_t;
  using Accumulator = bool;
  static constexpr bool load(uint8_t stored) { return stored != 0; }
  static constexpr uint8_t store(bool value) { return value ? 1 : 0; }
};

template <class T>
struct Floating {
  using Storage = T;
  using Accumulator = T;
  static constexpr T load(T stored) { return stored; }
  static constexpr T store(T value) { return canonical(value); }
};

template <class Format>
struct Small {
  using Storage = typename Format::Storage;
  using Accumulator = float;
  static constexpr float load(Storage stored) { return decode<Format>(stored); }
  static constexpr Storage store(float value) { return encode<Format>(value); }
};

// The arithmetic of each type. `Ordered` tells which of two values is the larger, and what is left of a division, where
// that is not `Element`: signed integers are added as unsigned ones. A type without an entry does not compile.
template <class ElementType, class OrderedType = ElementType>
struct As {
  using Element = ElementType;
  using Ordered = OrderedType;
};
template <DataType kType>
struct ElementOf;
template <>
struct ElementOf<DataType::kInt8> : As<Integer<uint8_t>, Integer<int8_t>> {};
template <>
struct ElementOf<DataType::kUint8> : As<Integer<uint8_t>> {};
template <>
struct ElementOf<DataType::kInt32> : As<Integer<uint32_t>, Integer<int32_t>> {};
template <>
struct ElementOf<DataType::kUint32> : As<Integer<uint32_t>> {};
template <>
struct ElementOf<DataType::kInt64> : As<Integer<uint64_t>, Integer<int64_t>> {};
template <>
struct ElementOf<DataType::kUint64> : As<Integer<uint64_t>> {};
template <>
struct ElementOf<DataType::kFloat16> : As<Small<Float16>> {};
template <>
struct ElementOf<DataType::kFloat32> : As<Floating<float>> {};
template <>
struct ElementOf<DataType::kFloat64> : As<Floating<double>> {};
template <>
struct ElementOf<DataType::kBfloat16> : As<Small<Bfloat16>> {};
template <>
struct ElementOf<DataType::kFloat8e4m3> : As<Small<Float8e4m3>> {};
template <>
struct ElementOf<DataType::kFloat8e5m2> : As<Small<Float8e5m2>> {};
template <>
struct ElementOf<DataType::kBool> : As<Truth> {};
template <>
struct ElementOf<DataType::kInt16> : As<Integer<uint16_t>, Integer<int16_t>> {};
template <>
struct ElementOf<DataType::kUint16> : As<Integer<uint16_t>> {};

// A table of make(ElementOf<type>()) for every type.
template <class Make, int... kTypes>
constexpr auto forEveryType(Make make, std::integer_sequence<int, kTypes...>) {
  using Value = decltype(make(ElementOf<DataType::kFloat32>()));
  return EnumTable<DataType, Value, kDataTypes>{{make(ElementOf<static_cast<DataType>(kTypes)>())...}};
}
template <class Make>
constexpr auto forEveryType(Make make) {
  return forEveryType(make, std::make_integer_sequence<int, kDataTypes>());
}

// Whether the rows of the types say of their values what the arithmetic does with them.
template <class Of>
constexpr bool isStoredAs(const DataTypeRow& row, Of) {
  using Storage = typename Of::Ordered::Storage;
  using Limits = std::numeric_limits<typename Of::Ordered::Accumulator>;
  if (sizeof(Storage) != row.bytes || Limits::is_integer == row.isFloat()) return false;
  if (!row.isFloat()) return Limits::is_signed == row.isSigned;
  if (std::is_floating_point_v<Storage>) return Limits::digits == row.mantissaBits + 1;
  constexpr auto load = Of::Ordered::load;
  const auto one = static_cast<Storage>(uint64_t(row.bias()) << row.mantissaBits);
  const auto top = static_cast<Storage>(((uint64_t{1} << row.exponentBits) - 1) << row.mantissaBits);
  return load(one) == 1 && load(static_cast<Storage>(one + 1)) == 1 + 1.0f / (1 << row.mantissaBits) &&
         (load(top) > Limits::max()) == row.hasInfinity;
}
template <int... kTypes>
constexpr bool areStoredAsRowsSay(std::integer_sequence<int, kTypes...>) {
  return (isStoredAs(kDataTypeRows[kTypes], ElementOf<static_cast<DataType>(kTypes)>()) && ...);
}
static_assert(areStoredAsRowsSay(std::make_integer_sequence<int, kDataTypes>()),
              "a row of base/data_type.h says something else of a type's values than is done with them here");

template <class T>
constexpr T wrappingProduct(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <class T>
constexpr T wrappingSum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

// What a pre-multiplied sum adds: the product as a value of the element's type. A rank that sends its product rounds
// it, as everything that is stored; so does one that adds it at once, or the ranks' bits would depend on who does what.
template <class Element>
constexpr typename Element::Accumulator scaled(typename Element::Accumulator value,
                                               typename Element::Accumulator factor) {
  return Element::load(Element::store(wrappingProduct(value, factor)));
}

// Of equal values (zeros of either sign) the earlier one stays; a NaN, once met, stays. Floats have no bitwise folds.
template <Fold kFold, class T>
constexpr T apply(T sum, T value) {
  if constexpr (kFold == Fold::kBitAnd) return static_cast<T>(sum & value);
  if constexpr (kFold == Fold::kBitOr) return static_cast<T>(sum | value);
  if constexpr (kFold == Fold::kBitXor) return static_cast<T>(sum ^ value);
  if constexpr (kFold == Fold::kProd) return wrappingProduct(sum, value);
  if constexpr (kFold == Fold::kMax) return sum < value || value != value ? value : sum;
  if constexpr (kFold == Fold::kMin) return value < sum || value != value ? value : sum;
  return wrappingSum(sum, value);
}

// A quotient of integers that a double holds exactly is never rounded up to the next whole number, so the division
// can be made in double, which takes a fraction of the time that the divider of integers does.
template <class T>
constexpr T divide(T value, uint32_t divisor) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  constexpr int64_t kExact = int64_t{1} << 52;
  const Wide wide = value;
  const bool exact = sizeof(T) < 8 ||
                     (wide < static_cast<Wide>(kExact) && (!std::is_signed_v<T> || wide > static_cast<Wide>(-kExact)));
  if (exact) return static_cast<T>(static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(wide)) / divisor));
  return static_cast<T>(wide / static_cast<Wide>(divisor));
}

}  // namespace tutti::kernels

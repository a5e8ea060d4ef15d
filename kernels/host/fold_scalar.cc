// The scalar kernel: the short path, and what the vector kernel must agree with bit for bit.
#include <cstring>
#include <type_traits>

#include "kernels/host/convert.h"
#include "kernels/host/job.h"

namespace tutti::kernels {
namespace {

// How an element is stored and in which type it is accumulated. Integers accumulate as unsigned: they wrap.
template <class T>
struct Integer {
  using Storage = T;
  using Accumulator = T;
  static T load(T stored) { return stored; }
  static T store(T value) { return value; }
};

template <class T>
struct Floating {
  using Storage = T;
  using Accumulator = T;
  static T load(T stored) { return stored; }
  static T store(T value) { return canonical(value); }
};

template <class Format>
struct Small {
  using Storage = typename Format::Storage;
  using Accumulator = float;
  static float load(Storage stored) { return decode<Format>(stored); }
  static Storage store(float value) { return encode<Format>(value); }
};

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

// Of equal values (zeros of either sign) the earlier one stays; a NaN, once met, stays.
template <Fold kFold, class T>
constexpr T apply(T sum, T value) {
  if constexpr (kFold == Fold::kProd) return wrappingProduct(sum, value);
  if constexpr (kFold == Fold::kMax) return sum < value || value != value ? value : sum;
  if constexpr (kFold == Fold::kMin) return value < sum || value != value ? value : sum;
  return wrappingSum(sum, value);
}

template <class Element>
typename Element::Accumulator at(const std::byte* array, size_t index) {
  typename Element::Storage stored;
  std::memcpy(&stored, array + index * sizeof stored, sizeof stored);
  return Element::load(stored);
}

template <class Element, Fold kFold>
void run(const Job& job) {
  using Accumulator = typename Element::Accumulator;
  const auto* factorBytes = reinterpret_cast<const std::byte*>(&job.factor);
  const Accumulator factor = kFold == Fold::kScaledSum ? at<Element>(factorBytes, 0) : Accumulator{};
  for (size_t i = job.begin; i < job.end; ++i) {
    auto value = [&](int source) {
      const Accumulator plain = at<Element>(job.sources[source], i);
      return kFold == Fold::kScaledSum && source == job.scaledSource ? wrappingProduct(plain, factor) : plain;
    };
    Accumulator result = value(0);
    for (int source = 1; source < job.sourceCount; ++source) result = apply<kFold>(result, value(source));
    if constexpr (kFold == Fold::kSum && std::is_floating_point_v<Accumulator>) {
      if (job.divisor > 1) result /= static_cast<Accumulator>(job.divisor);
    }
    const typename Element::Storage stored = Element::store(result);
    for (int d = 0; d < job.destinationCount; ++d)
      std::memcpy(job.destinations[d] + i * sizeof stored, &stored, sizeof stored);
  }
}

using Run = void (*)(const Job&);
struct Runs {
  Run byFold[kFolds];
};

// Signed and unsigned integers differ in their order alone.
template <class Element, class Ordered = Element>
constexpr Runs runsOf() {
  return {{run<Element, Fold::kSum>, run<Element, Fold::kProd>, run<Ordered, Fold::kMax>, run<Ordered, Fold::kMin>,
           run<Element, Fold::kScaledSum>}};
}

constexpr Runs kRuns[kDataTypes] = {
    runsOf<Integer<uint8_t>, Integer<int8_t>>(),
    runsOf<Integer<uint8_t>>(),
    runsOf<Integer<uint32_t>, Integer<int32_t>>(),
    runsOf<Integer<uint32_t>>(),
    runsOf<Integer<uint64_t>, Integer<int64_t>>(),
    runsOf<Integer<uint64_t>>(),
    runsOf<Small<Float16>>(),
    runsOf<Floating<float>>(),
    runsOf<Floating<double>>(),
    runsOf<Small<Bfloat16>>(),
    runsOf<Small<Float8e4m3>>(),
    runsOf<Small<Float8e5m2>>(),
};

// A quotient of integers that a double holds exactly is never rounded up to the next whole number, so the division
// can be made in double, which takes a fraction of the time that the divider of integers does.
template <class T>
T divide(T value, uint32_t divisor) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  constexpr int64_t kExact = int64_t{1} << 52;
  const Wide wide = value;
  const bool exact = sizeof(T) < 8 ||
                     (wide < static_cast<Wide>(kExact) && (!std::is_signed_v<T> || wide > static_cast<Wide>(-kExact)));
  if (exact) return static_cast<T>(static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(wide)) / divisor));
  return static_cast<T>(wide / static_cast<Wide>(divisor));
}

template <class T>
void divideAll(std::byte* elements, size_t begin, size_t end, uint32_t divisor) {
  for (size_t i = begin; i < end; ++i) {
    T value;
    std::memcpy(&value, elements + i * sizeof value, sizeof value);
    value = divide(value, divisor);
    std::memcpy(elements + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace

void foldScalar(const Job& job) noexcept { kRuns[static_cast<int>(job.type)].byFold[static_cast<int>(job.fold)](job); }

void divideIntegers(DataType type, std::byte* elements, size_t begin, size_t end, uint32_t divisor) noexcept {
  switch (type) {
    case DataType::kInt8:
      return divideAll<int8_t>(elements, begin, end, divisor);
    case DataType::kUint8:
      return divideAll<uint8_t>(elements, begin, end, divisor);
    case DataType::kInt32:
      return divideAll<int32_t>(elements, begin, end, divisor);
    case DataType::kUint32:
      return divideAll<uint32_t>(elements, begin, end, divisor);
    case DataType::kInt64:
      return divideAll<int64_t>(elements, begin, end, divisor);
    case DataType::kUint64:
      return divideAll<uint64_t>(elements, begin, end, divisor);
    default:
      return;
  }
}

}  // namespace tutti::kernels

// The scalar kernel: the short path, and what the vector kernel must agree with bit for bit.
#include <cstring>
#include <type_traits>

#include "kernels/element.h"
#include "kernels/host/job.h"

namespace tutti::kernels {
namespace {

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
      return kFold == Fold::kScaledSum && source == job.scaledSource ? scaled<Element>(plain, factor) : plain;
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

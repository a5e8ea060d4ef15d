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

// Signed integers are added as unsigned ones.
template <class Ordered, class Accumulator>
Accumulator quotient(Accumulator sum, uint32_t divisor) {
  if constexpr (std::is_same_v<Accumulator, bool>)
    return sum;
  else if constexpr (std::is_floating_point_v<Accumulator>)
    return sum / static_cast<Accumulator>(divisor);
  else
    return static_cast<Accumulator>(divide(static_cast<typename Ordered::Accumulator>(sum), divisor));
}

template <class Element, Fold kFold, class Ordered = Element>
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
    if constexpr (kFold == Fold::kSum) {
      if (job.divisor > 1) result = quotient<Ordered>(result, job.divisor);
    }
    const typename Element::Storage stored = Element::store(result);
    for (int d = 0; d < job.destinationCount; ++d)
      std::memcpy(job.destinations[d] + i * sizeof stored, &stored, sizeof stored);
  }
}

using Run = void (*)(const Job&);
using Runs = EnumTable<Fold, Run, kFolds>;

// Of floats there is none.
template <class Element, Fold kFold>
constexpr Run runBits() {
  if constexpr (std::is_integral_v<typename Element::Accumulator>) return run<Element, kFold>;
  return nullptr;
}

constexpr auto kRuns = forEveryType([](auto of) {
  using Element = typename decltype(of)::Element;
  using Ordered = typename decltype(of)::Ordered;
  return Runs{{run<Element, Fold::kSum, Ordered>, run<Element, Fold::kProd>, run<Ordered, Fold::kMax>,
               run<Ordered, Fold::kMin>, run<Element, Fold::kScaledSum>, runBits<Element, Fold::kBitAnd>(),
               runBits<Element, Fold::kBitOr>(), runBits<Element, Fold::kBitXor>()}};
});

}  // namespace

void foldScalar(const Job& job) noexcept { kRuns[job.type][job.fold](job); }

}  // namespace tutti::kernels

// The vector kernel: one destination; and stores that go around the caches. Highway compiles this file once for each
// kind of vectors (kernels/host/vectors.h).
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>

#include "kernels/host/job.h"
#include "kernels/host/vectors.h"

// What SSSE3 and all that is better than AVX3 (the numbers below it) add is of no use here; the scalable ones would not
// allow groups of vectors.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | (HWY_AVX3 - 1) | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/fold_vector.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/host/divide-inl.h"
#include "kernels/host/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void foldHere(const Job& job) {
  Job single = job;
  single.destinationCount = 1;
  foldScalar(single);
}

void streamHere(std::byte* to, const std::byte* from, size_t bytes) { streamNarrow(to, from, bytes); }

#else

constexpr size_t kCacheLine = 64;

// The wider the better: what collects a line is full after one store or two.
void streamHere(std::byte* to, const std::byte* from, size_t bytes) {
  const hn::ScalableTag<uint8_t> lanes;
  constexpr size_t kStep = std::min<size_t>(hn::MaxLanes(lanes), kCacheLine);
  auto* const places = reinterpret_cast<uint8_t*>(to);
  const auto* const values = reinterpret_cast<const uint8_t*>(from);
  for (size_t line = 0; line < bytes; line += kCacheLine)
    for (size_t i = 0; i < kCacheLine; i += kStep)
      hn::Stream(hn::LoadU(lanes, values + line + i), lanes, places + line + i);
}

// One type and one fold. `kHot` kernels take four groups at a time, which hides the latency of the arithmetic and the
// cost of the loop over the sources; the others are there to be small.
template <class Lanes, class Op, bool kScaled, bool kHot>
struct Kernel {
  using D = typename Lanes::D;
  using Accumulators = typename Lanes::Accumulators;
  static constexpr int kParts = sizeof(Accumulators) / sizeof(hn::Vec<D>);
  static constexpr bool kDivides = std::is_same_v<Op, Sum> && !kScaled && hwy::IsFloat<hn::TFromD<D> >();

  static HWY_INLINE Accumulators loadScaled(const Job& job, int source, const std::byte* from) {
    const Accumulators plain = Lanes::load(from);
    if (!kScaled || source != job.scaledSource) return plain;
    const auto factor = repeated<hn::Vec<D>, kParts>(hn::Set(D(), Lanes::scalar(job.factor)));
    return Lanes::rounded(combinePacks<Product>(D(), plain, factor));
  }

  static HWY_INLINE Accumulators fold(const Accumulators& a, const Accumulators& b) {
    return combinePacks<Op>(D(), a, b);
  }

  static HWY_INLINE typename Lanes::Stored finish(const Job& job, Accumulators result) {
    if constexpr (kDivides) {
      if (job.divisor > 1) {
        const auto divisor = hn::Set(D(), static_cast<hn::TFromD<D> >(job.divisor));
        result = combinePacks<Quotient>(D(), result, repeated<hn::Vec<D>, kParts>(divisor));
      }
    }
    return Lanes::encode(result);
  }

  static HWY_INLINE void foldOne(const Job& job, size_t offset) {
    Accumulators result = loadScaled(job, 0, job.sources[0] + offset);
    for (int s = 1; s < job.sourceCount; ++s) result = fold(result, loadScaled(job, s, job.sources[s] + offset));
    Lanes::store(finish(job, result), job.destinations[0] + offset);
  }

  static HWY_INLINE void foldFour(const Job& job, size_t offset) {
    const size_t step = Lanes::bytes();
    const std::byte* from = job.sources[0] + offset;
    Accumulators a = loadScaled(job, 0, from), b = loadScaled(job, 0, from + step);
    Accumulators c = loadScaled(job, 0, from + 2 * step), d = loadScaled(job, 0, from + 3 * step);
    for (int s = 1; s < job.sourceCount; ++s) {
      from = job.sources[s] + offset;
      a = fold(a, loadScaled(job, s, from));
      b = fold(b, loadScaled(job, s, from + step));
      c = fold(c, loadScaled(job, s, from + 2 * step));
      d = fold(d, loadScaled(job, s, from + 3 * step));
    }
    std::byte* const to = job.destinations[0] + offset;
    Lanes::store(finish(job, a), to);
    Lanes::store(finish(job, b), to + step);
    Lanes::store(finish(job, c), to + 2 * step);
    Lanes::store(finish(job, d), to + 3 * step);
  }

  static HWY_INLINE typename Lanes::Stored foldPair(const Job& job, const std::byte* first, const std::byte* second) {
    return finish(job, fold(Lanes::load(first), Lanes::load(second)));
  }

  static_assert(!(kHot && kScaled), "foldPairs() scales nothing");

  // Of two, as most are: in a loop of its own, whose addresses no store can change.
  static HWY_NOINLINE size_t foldPairs(const Job& job, size_t offset, size_t end) {
    const Job here = job;
    const std::byte* const first = job.sources[0];
    const std::byte* const second = job.sources[1];
    std::byte* const to = job.destinations[0];
    const size_t step = Lanes::bytes();
    for (; end - offset >= 4 * step; offset += 4 * step) {
      const size_t at1 = offset + step, at2 = at1 + step, at3 = at2 + step;
      const auto a = foldPair(here, first + offset, second + offset);
      const auto b = foldPair(here, first + at1, second + at1);
      const auto c = foldPair(here, first + at2, second + at2);
      const auto d = foldPair(here, first + at3, second + at3);
      Lanes::store(a, to + offset);
      Lanes::store(b, to + at1);
      Lanes::store(c, to + at2);
      Lanes::store(d, to + at3);
    }
    return offset;
  }

  // The last bytes go through a vector's worth of memory, and so through the same arithmetic.
  static HWY_INLINE Accumulators loadPart(const Job& job, int source, size_t offset, size_t bytes) {
    HWY_ALIGN std::byte padded[HWY_MAX_BYTES] = {};
    std::memcpy(padded, job.sources[source] + offset, bytes);
    return loadScaled(job, source, padded);
  }

  static HWY_INLINE void foldPart(const Job& job, size_t offset, size_t bytes) {
    Accumulators result = loadPart(job, 0, offset, bytes);
    for (int s = 1; s < job.sourceCount; ++s) result = fold(result, loadPart(job, s, offset, bytes));
    HWY_ALIGN std::byte padded[HWY_MAX_BYTES];
    Lanes::store(finish(job, result), padded);
    std::memcpy(job.destinations[0] + offset, padded, bytes);
  }

  static void run(const Job& job) {
    const size_t size = sizeOf(job.type);
    const size_t step = Lanes::bytes();
    const size_t end = job.end * size;
    size_t offset = job.begin * size;
    if constexpr (kHot) {
      if (job.sourceCount == 2 && end - offset >= 4 * step) offset = foldPairs(job, offset, end);
      for (; end - offset >= 4 * step; offset += 4 * step) foldFour(job, offset);
    }
    for (; end - offset >= step; offset += step) foldOne(job, offset);
    if (offset < end) foldPart(job, offset, end - offset);
  }
};

using Run = void (*)(const Job&);
using Runs = EnumTable<Fold, Run, kFolds>;

template <bool kHot, class Lanes>
constexpr Runs floatRuns() {
  return {{Kernel<Lanes, Sum, false, kHot>::run, Kernel<Lanes, Product, false, false>::run,
           Kernel<Lanes, Larger, false, kHot>::run, Kernel<Lanes, Smaller, false, kHot>::run,
           Kernel<Lanes, Sum, true, false>::run, nullptr, nullptr, nullptr}};
}

// Signed and unsigned integers differ in their order alone; their bits are one thing at every width.
template <bool kHot, class Lanes, class Ordered>
constexpr Runs integerRuns() {
  using Bits = PlainLanes<uint8_t>;
  return {{Kernel<Lanes, Sum, false, kHot>::run, Kernel<Lanes, Product, false, false>::run,
           Kernel<Ordered, Larger, false, kHot>::run, Kernel<Ordered, Smaller, false, kHot>::run,
           Kernel<Lanes, Sum, true, false>::run, Kernel<Bits, BitAnd, false, true>::run,
           Kernel<Bits, BitOr, false, true>::run, Kernel<Bits, BitXor, false, true>::run}};
}

// Of 0 and 1 the larger one is "or", and so is the sum; the smaller one is "and", and so is the product.
constexpr Runs truthRuns() {
  constexpr Run kOr = Kernel<TruthLanes, BitOr, false, true>::run, kAnd = Kernel<TruthLanes, BitAnd, false, true>::run;
  return {{kOr, kAnd, kOr, kAnd, Kernel<TruthLanes, BitOr, true, false>::run, kAnd, kOr,
           Kernel<TruthLanes, BitXor, false, true>::run}};
}

// By how an element is stored. Those with vectors of their own come last.
template <class T, class Order>
constexpr Runs runsFor(Integer<T>, Integer<Order>) {
  return integerRuns<(sizeof(T) > 1), PlainLanes<T>, PlainLanes<Order> >();
}
constexpr Runs runsFor(Truth, Truth) { return truthRuns(); }
template <class T>
constexpr Runs runsFor(Floating<T>, Floating<T>) {
  return floatRuns<true, PlainLanes<T> >();
}
template <class Format>
constexpr Runs runsFor(Small<Format>, Small<Format>) {
  return floatRuns<true, SmallLanes<Format> >();
}
constexpr Runs runsFor(Small<Bfloat16>, Small<Bfloat16>) { return floatRuns<true, Bfloat16Lanes>(); }
#if TUTTI_NATIVE_FLOAT16
constexpr Runs runsFor(Small<Float16>, Small<Float16>) { return floatRuns<true, Float16Lanes>(); }
constexpr Runs runsFor(Small<Float8e4m3>, Small<Float8e4m3>) { return floatRuns<true, Float8Lanes<Float8e4m3> >(); }
constexpr Runs runsFor(Small<Float8e5m2>, Small<Float8e5m2>) { return floatRuns<true, Float8Lanes<Float8e5m2> >(); }
#endif

constexpr auto kRuns =
    forEveryType([](auto of) { return runsFor(typename decltype(of)::Element(), typename decltype(of)::Ordered()); });

using Divide = void (*)(std::byte*, size_t, uint32_t);
constexpr auto kDivide = forEveryType([](auto of) -> Divide {
  using Ordered = typename decltype(of)::Ordered::Accumulator;
  if constexpr (std::is_integral_v<Ordered> && !std::is_same_v<Ordered, bool>) return divideArray<Ordered>;
  return nullptr;
});

void foldHere(const Job& job) {
  kRuns[job.type][job.fold](job);
  if (job.divisor <= 1 || kDivide[job.type] == nullptr) return;
  kDivide[job.type](job.destinations[0] + job.begin * sizeOf(job.type), job.end - job.begin, job.divisor);
}

#endif

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernels {

namespace {

#if defined(__x86_64__)

// Each of these also asks whether the system keeps such registers.
bool hasSse4() noexcept {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
}

bool hasFloat16() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool hasAvx2() noexcept {
  return hasSse4() && hasFloat16() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

bool hasAvx3() noexcept {
  return hasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

#endif

bool always() noexcept { return true; }

constexpr Vectors kEvery[] = {
#if HWY_TARGETS & ~HWY_STATIC_TARGET & HWY_AVX3
    {HWY_AVX3, hasAvx3, N_AVX3::foldHere, N_AVX3::streamHere},
#endif
#if HWY_TARGETS & ~HWY_STATIC_TARGET & HWY_AVX2
    {HWY_AVX2, hasAvx2, N_AVX2::foldHere, N_AVX2::streamHere},
#endif
#if HWY_TARGETS & ~HWY_STATIC_TARGET & HWY_SSE4
    {HWY_SSE4, hasSse4, N_SSE4::foldHere, N_SSE4::streamHere},
#endif
    {HWY_STATIC_TARGET, always, HWY_STATIC_DISPATCH(foldHere), HWY_STATIC_DISPATCH(streamHere)},
};

const Vectors* widest() noexcept {
  return std::find_if(std::begin(kEvery), std::end(kEvery), [](const Vectors& one) { return one.runHere(); });
}

void chooseAndFold(const Job& job) {
  useVectors(nullptr);
  foldVector(job);
}

void chooseAndStream(std::byte* to, const std::byte* from, size_t bytes) {
  useVectors(nullptr);
  streamLines(to, from, bytes);
}

constinit std::atomic<void (*)(const Job&)> chosen{chooseAndFold};
constinit std::atomic<void (*)(std::byte*, const std::byte*, size_t)> chosenStream{chooseAndStream};

}  // namespace

std::span<const Vectors> everyVectors() noexcept { return kEvery; }

void useVectors(const Vectors* vectors) noexcept {
  const Vectors& one = vectors != nullptr ? *vectors : *widest();
  chosen.store(one.fold, std::memory_order_relaxed);
  chosenStream.store(one.streamLines, std::memory_order_relaxed);
}

void foldVector(const Job& job) noexcept { chosen.load(std::memory_order_relaxed)(job); }

void streamLines(std::byte* to, const std::byte* from, size_t bytes) noexcept {
  chosenStream.load(std::memory_order_relaxed)(to, from, bytes);
}

}  // namespace tutti::kernels
#endif

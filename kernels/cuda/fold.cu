// The kernel that reduces without waiting. Its arithmetic is that of the collective kernel (math.cuh), to the bit; how
// it goes through memory is its own, in as little code as will do: it exists for every type and every GPU.
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/fold_launch.h"
#include "kernels/cuda/move.cuh"

namespace tutti::cuda {
namespace {

constexpr uint32_t kPack = sizeof(Pack);
constexpr uint32_t kBytesOfBlock = 4 * kThreads * kPack, kMostBlocks = 128;

uint32_t blocksFor(uint32_t bytes) { return std::clamp(bytes / kBytesOfBlock, 1u, kMostBlocks); }

__device__ inline Reduction reductionOf(const Fold& fold) {
  uint64_t factor = fold.arithmetic.factor;
  if (fold.factorAt != nullptr) memcpy(&factor, fold.factorAt, sizeOf(fold.arithmetic.type));
  return {kernels::foldOf(fold.arithmetic.op, fold.scaledSource >= 0), fold.arithmetic.divisor, factor,
          fold.scaledSource};
}

__device__ inline uint32_t firstIndex() { return blockIdx.x * kThreads + threadIdx.x; }
__device__ inline uint32_t stride() { return gridDim.x * kThreads; }

// Where whole packs begin, alike for all operands, and where they end. The elements before and behind them, or all
// where there is no such place, go one by one.
struct Body {
  uint32_t begin = 0, end = 0;
};

__device__ inline Body bodyOf(const Fold& fold, uint32_t elementBytes) {
  const auto first = reinterpret_cast<uintptr_t>(fold.from[0]);
  uintptr_t apart = 0;  // the bits of alignment in which the operands differ
  for (uint32_t i = 1; i < fold.fromCount; ++i) apart |= reinterpret_cast<uintptr_t>(fold.from[i]) ^ first;
  for (uint32_t i = 0; i < fold.toCount; ++i) apart |= reinterpret_cast<uintptr_t>(fold.to[i]) ^ first;
  const auto head = static_cast<uint32_t>(-first % kPack);
  if (apart % kPack != 0 || head % elementBytes != 0 || head >= fold.bytes) return {};
  return {head, head + (fold.bytes - head) / kPack * kPack};
}

// What a thread takes at a time: four elements, or a pack. Their arithmetic is code for each element, and conversions
// of small ones are long.
template <class Element>
using WordOf =
    std::conditional_t<sizeof(Element) == 1, uint32_t, std::conditional_t<sizeof(Element) == 2, uint64_t, Pack>>;

template <class Math, class Word>
__device__ void foldWord(const Fold& fold, const Reduction& reduction, uint32_t at) {
  auto group = Math::load(reduction, *reinterpret_cast<const Word*>(fold.from[0] + at), 0);
  for (uint32_t i = 1; i < fold.fromCount; ++i)
    Math::fold(reduction, group,
               Math::load(reduction, *reinterpret_cast<const Word*>(fold.from[i] + at), static_cast<int>(i)));
  const Word word = Math::template store<Word>(reduction, group);
  for (uint32_t i = 0; i < fold.toCount; ++i) *reinterpret_cast<Word*>(fold.to[i] + at) = word;
}

// One element, which need not lie at a multiple of its size.
template <class Math>
__device__ void foldElement(const Fold& fold, const Reduction& reduction, uint32_t at) {
  using Storage = typename Math::Storage;
  const auto load = [&](uint32_t i) {
    const auto element = elementOf<Storage>(loadBytes(fold.from[i] + at, sizeof(Storage)));
    return Math::load(reduction, element, static_cast<int>(i));
  };
  auto group = load(0);
  for (uint32_t i = 1; i < fold.fromCount; ++i) Math::fold(reduction, group, load(i));
  const Storage element = Math::template store<Storage>(reduction, group);
  for (uint32_t i = 0; i < fold.toCount; ++i) storeBytes(fold.to[i] + at, bitsOf(element), sizeof(Storage));
}

template <class Math>
__device__ void foldAll(const Fold& fold, const Reduction& reduction) {
  constexpr uint32_t kElement = sizeof(typename Math::Storage);
  const Body body = bodyOf(fold, kElement);
  using Word = WordOf<typename Math::Storage>;
  for (uint32_t at = body.begin + firstIndex() * sizeof(Word); at < body.end; at += stride() * sizeof(Word))
    foldWord<Math, Word>(fold, reduction, at);
  const uint32_t before = body.begin / kElement, others = (fold.bytes - (body.end - body.begin)) / kElement;
  for (uint32_t i = firstIndex(); i < others; i += stride())
    foldElement<Math>(fold, reduction, i < before ? i * kElement : body.end + (i - before) * kElement);
}

__global__ void __launch_bounds__(kThreads, 1) tuttiFold(const __grid_constant__ Fold fold) {
  const Reduction reduction = reductionOf(fold);
  withAnyMath(fold.arithmetic.type, [&](auto math) { foldAll<decltype(math)>(fold, reduction); });
}

}  // namespace

cudaError_t launchFold(const Fold& fold, cudaStream_t stream) {
  return launchKernel(tuttiFold, blocksFor(fold.bytes), kThreads, stream, fold);
}

cudaError_t loadFoldKernel() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(tuttiFold));
}

}  // namespace tutti::cuda

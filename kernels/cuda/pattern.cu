// The kernels of the self-test: they write a pattern into memory that was mapped, or look for it there.
#include "kernels/cuda/pattern.h"

#include <algorithm>

#include "kernels/cuda/platform.cuh"

namespace tutti::cuda {
namespace {

constexpr uint32_t kPatternThreads = 64;
// The emulation keeps a stack for each thread of the blocks that run at once.
#ifdef TUTTI_EMULATION
constexpr uint32_t kMostBlocks = 16;
#else
constexpr uint32_t kMostBlocks = 256;
#endif

// The byte at a position: a few rounds of mixing, so that neither a shift nor another seed gives the same bytes.
__device__ inline uint8_t patternByte(size_t at, uint64_t seed) {
  uint64_t x = (seed + at) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 32) ^ seed) * 0xd6e8feb86659fd93u;
  return static_cast<uint8_t>(x >> 56);
}

__device__ inline size_t firstIndex() { return size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline size_t stride() { return size_t{gridDim.x} * blockDim.x; }

// Writing: `to`; checking: `from` and `wrong`.
struct Pattern {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  uint32_t* wrong = nullptr;
  size_t bytes = 0;
  uint64_t seed = 0;
};

__global__ void writePattern(const Pattern pattern) {
  for (size_t i = firstIndex(); i < pattern.bytes; i += stride())
    pattern.to[i] = static_cast<std::byte>(patternByte(i, pattern.seed));
}

// Volatile: another GPU or the host may have written the bytes, and what a cache holds of them does not count.
__global__ void checkPattern(const Pattern pattern) {
  const volatile std::byte* from = pattern.from;
  uint32_t wrong = 0;
  for (size_t i = firstIndex(); i < pattern.bytes; i += stride())
    wrong += from[i] != static_cast<std::byte>(patternByte(i, pattern.seed));
  if (wrong != 0) atomicAdd(pattern.wrong, wrong);
}

uint32_t blocksFor(size_t bytes) {
  const size_t blocks = (bytes + kPatternThreads - 1) / kPatternThreads;
  return static_cast<uint32_t>(std::clamp<size_t>(blocks, 1, kMostBlocks));
}

cudaError_t load(void (*kernel)(const Pattern)) {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
}

}  // namespace

cudaError_t launchWritePattern(std::byte* to, size_t bytes, uint64_t seed, cudaStream_t stream) {
  const Pattern pattern{.to = to, .bytes = bytes, .seed = seed};
  return launchKernel(writePattern, blocksFor(bytes), kPatternThreads, stream, pattern);
}

cudaError_t launchCheckPattern(const std::byte* from, size_t bytes, uint64_t seed, uint32_t* wrong,
                               cudaStream_t stream) {
  const Pattern pattern{.from = from, .wrong = wrong, .bytes = bytes, .seed = seed};
  return launchKernel(checkPattern, blocksFor(bytes), kPatternThreads, stream, pattern);
}

cudaError_t loadPatternKernels() {
  const cudaError_t status = load(writePattern);
  return status != cudaSuccess ? status : load(checkPattern);
}

}  // namespace tutti::cuda

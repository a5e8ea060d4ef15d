// The kernels of the self-test: they write a pattern into memory that was mapped, or look for it there.
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/cuda/collective.h"

namespace tutti::cuda {
namespace {

constexpr unsigned kPatternThreads = 256, kMostBlocks = 64;

// The byte at a position: a few rounds of mixing, so that neither a shift nor another seed gives the same bytes.
__device__ inline uint8_t patternByte(size_t at, uint64_t seed) {
  uint64_t x = (seed + at) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 32) ^ seed) * 0xd6e8feb86659fd93u;
  return static_cast<uint8_t>(x >> 56);
}

__device__ inline size_t firstIndex() { return size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline size_t stride() { return size_t{gridDim.x} * blockDim.x; }

__global__ void writePattern(std::byte* to, size_t bytes, uint64_t seed) {
  for (size_t i = firstIndex(); i < bytes; i += stride()) to[i] = static_cast<std::byte>(patternByte(i, seed));
}

// Volatile: another GPU or the host may have written the bytes, and what a cache holds of them does not count.
__global__ void checkPattern(const volatile std::byte* from, size_t bytes, uint64_t seed, uint32_t* wrong) {
  uint32_t found = 0;
  for (size_t i = firstIndex(); i < bytes; i += stride()) found += from[i] != static_cast<std::byte>(patternByte(i, seed));
  if (found != 0) atomicAdd(wrong, found);
}

cudaLaunchConfig_t shapeFor(size_t bytes, cudaStream_t stream) {
  cudaLaunchConfig_t shape{};
  const size_t blocks = (bytes + kPatternThreads - 1) / kPatternThreads;
  shape.gridDim = dim3(static_cast<unsigned>(std::clamp<size_t>(blocks, 1, kMostBlocks)));
  shape.blockDim = dim3(kPatternThreads);
  shape.stream = stream;
  return shape;
}

template <class Kernel>
cudaError_t load(Kernel* kernel) {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, kernel);
}

}  // namespace

cudaError_t launchWritePattern(std::byte* to, size_t bytes, uint64_t seed, cudaStream_t stream) {
  const cudaLaunchConfig_t shape = shapeFor(bytes, stream);
  return cudaLaunchKernelEx(&shape, writePattern, to, bytes, seed);
}

cudaError_t launchCheckPattern(const std::byte* from, size_t bytes, uint64_t seed, uint32_t* wrong,
                               cudaStream_t stream) {
  const cudaLaunchConfig_t shape = shapeFor(bytes, stream);
  return cudaLaunchKernelEx(&shape, checkPattern, static_cast<const volatile std::byte*>(from), bytes, seed, wrong);
}

cudaError_t loadPatternKernels() {
  const cudaError_t status = load(writePattern);
  return status != cudaSuccess ? status : load(checkPattern);
}

}  // namespace tutti::cuda

// The self-test of mapped memory. Neither kernel waits for anything.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace tutti::cuda {

// Fills `bytes` bytes with a pattern that every position and every seed makes different.
cudaError_t launchWritePattern(std::byte* to, size_t bytes, uint64_t seed, cudaStream_t stream);
// Adds to `*wrong` the number of bytes that are not those of the pattern.
cudaError_t launchCheckPattern(const std::byte* from, size_t bytes, uint64_t seed, uint32_t* wrong,
                               cudaStream_t stream);
// Makes both resident on the current device.
cudaError_t loadPatternKernels();

}  // namespace tutti::cuda

// From CUDA's error numbers to the project's exception: what was attempted, on which GPU, CUDA's text, what to do.
#pragma once
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <string>

#include "base/error.h"

namespace tutti::cuda {

// The Error of kCuda for a failed attempt, such as "allocating 64 bytes". Forgets CUDA's own note of it, so that no
// later check in this thread finds an error that was dealt with. `ordinal` is -1 where no GPU is meant.
Error errorOf(cudaError_t status, int ordinal, const std::string& attempt);

// "out of memory (cudaErrorMemoryAllocation)", and what to do where that is known.
std::string describe(cudaError_t status);

template <class... Args>
void check(cudaError_t status, int ordinal, fmt::format_string<Args...> attempt, Args&&... args) {
  if (status != cudaSuccess) [[unlikely]]
    throw errorOf(status, ordinal, fmt::format(attempt, std::forward<Args>(args)...));
}

}  // namespace tutti::cuda

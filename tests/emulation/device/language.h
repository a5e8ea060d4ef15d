// The words that CUDA adds to C++, as far as they are no functions.
#pragma once
#include <vector_types.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// A block stays on one thread of the process, and has it for itself. Not poisoned, unlike
// tutti::emulation::blockShared().
#define __shared__ static thread_local

inline constexpr int warpSize = 32;

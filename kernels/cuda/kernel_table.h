// What a hot kernel is made for, and the tables of them (hot_kernels.cuh).
#pragma once
#include <array>

#include "kernels/cuda/types.h"

namespace tutti::cuda {

using Kernel = void (*)(const Launch);

enum Kind { kMove, kSumFloat32, kSumFloat16, kSumBfloat16, kKinds };
using HotKernels = std::array<Kernel, kKinds>;

extern const HotKernels kSimpleKernels, kLLKernels, kLL128Kernels;

}  // namespace tutti::cuda

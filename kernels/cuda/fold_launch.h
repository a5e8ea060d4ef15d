// The launch of the kernel that reduces without waiting, as the host code sees it.
#pragma once
#include <cuda_runtime.h>

#include "kernels/cuda/types.h"

namespace tutti::cuda {

cudaError_t launchFold(const Fold& fold, cudaStream_t stream);
// Makes it resident on the current device.
cudaError_t loadFoldKernel();

}  // namespace tutti::cuda

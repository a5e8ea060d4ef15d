// The launch of the collective kernel, as the host code sees it.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/types.h"

namespace tutti::cuda {

// Queues the kernel over `blocks` blocks on the current device. All works of a launch that have the same protocol and
// arithmetic run in a kernel made for them, a mixture in one that can do everything.
cudaError_t launchCollective(const KernelLaunch& launch, uint32_t blocks, cudaStream_t stream);
// Makes every kernel resident on the current device, so that none is loaded later, behind one that waits. Tells how
// many blocks of the largest one a multiprocessor holds at once.
cudaError_t loadKernels(int& residentBlocksPerMultiprocessor);
uint32_t threadsPerBlock();

}  // namespace tutti::cuda

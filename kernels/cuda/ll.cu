#include "kernels/cuda/hot_kernels.cuh"

namespace tutti::cuda {
const HotKernels kLLKernels = hotKernels<LLProtocol>();
}  // namespace tutti::cuda

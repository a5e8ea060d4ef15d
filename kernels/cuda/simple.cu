#include "kernels/cuda/hot_kernels.cuh"

namespace tutti::cuda {
const HotKernels kSimpleKernels = hotKernels<SimpleProtocol>();
}  // namespace tutti::cuda

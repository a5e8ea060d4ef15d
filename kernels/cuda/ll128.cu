#include "kernels/cuda/hot_kernels.cuh"

namespace tutti::cuda {
const HotKernels kLL128Kernels = hotKernels<LL128Protocol>();
}  // namespace tutti::cuda

// The kernels of one protocol: a sum or average of fp32, fp16 or bf16, and plain data movement. Each protocol's are
// compiled in a file of their own (simple.cu, ll.cu, ll128.cu), side by side: they take a compiler longer than all the
// rest.
#pragma once
#include "kernels/cuda/collective.cuh"
#include "kernels/cuda/hot_elements.cuh"
#include "kernels/cuda/kernel_table.h"

namespace tutti::cuda {

template <class Protocol, class Arithmetic>
__global__ void __launch_bounds__(kThreads, 1) tuttiCollective(const __grid_constant__ Launch launch) {
  runWork<Protocol, Arithmetic>(findWork(launch));
}

template <class Protocol>
constexpr HotKernels hotKernels() {
  return {tuttiCollective<Protocol, Nothing>, tuttiCollective<Protocol, HotSum<HotFloat32>>,
          tuttiCollective<Protocol, HotSum<HotFloat16>>, tuttiCollective<Protocol, HotSum<HotBfloat16>>};
}

}  // namespace tutti::cuda

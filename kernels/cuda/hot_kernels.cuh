// The kernels of one protocol: a sum or average of each hot type, and plain data movement. Each protocol's are
// compiled in a file of their own (simple.cu, ll.cu, ll128.cu), side by side: they take a compiler longer than all the
// rest.
#pragma once
#include <utility>

#include "kernels/cuda/collective.cuh"
#include "kernels/cuda/hot_elements.cuh"
#include "kernels/cuda/kernel_table.h"

namespace tutti::cuda {

template <class Protocol, class Arithmetic>
__global__ void __launch_bounds__(kThreads, 1) tuttiCollective(const __grid_constant__ KernelLaunch launch) {
  runWork<Protocol, Arithmetic>(findWork(launch));
}

template <class Protocol, size_t... kPlaces>
constexpr HotKernels hotKernels(std::index_sequence<kPlaces...>) {
  return {tuttiCollective<Protocol, Nothing>, {tuttiCollective<Protocol, HotSum<HotElement<kHotTypes[kPlaces]>>>...}};
}
template <class Protocol>
constexpr HotKernels hotKernels() {
  return hotKernels<Protocol>(std::make_index_sequence<std::size(kHotTypes)>());
}

}  // namespace tutti::cuda

// What stands for kernel<<<grid, block, sharedBytes, stream>>>(arguments...).
#pragma once
#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulation/device/grid.h"

namespace tutti::emulation {

cudaError_t submitLaunch(Launch launch, cudaStream_t stream);

// Queues the kernel; the arguments are copied, once for the launch and again for each thread. Where the stream
// captures, it becomes a node of the graph. The kernel's mistakes are what the next synchronising call returns
// (cudaErrorLaunchFailure), and lastReport() tells.
template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream,
                   A&&... arguments) {
  static_assert(sizeof...(P) == sizeof...(A), "as many arguments as the kernel has");
  std::tuple<std::decay_t<P>...> values(std::forward<A>(arguments)...);
  return submitLaunch({reinterpret_cast<const void*>(kernel), grid, block, sharedBytes,
                       [kernel, values = std::move(values)] { std::apply(kernel, values); }},
                      stream);
}

template <class... P, size_t... I>
cudaError_t launchPointers(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t sharedBytes,
                           cudaStream_t stream, std::index_sequence<I...>) {
  return launch(kernel, grid, block, sharedBytes, stream, *static_cast<std::decay_t<P>*>(arguments[I])...);
}

}  // namespace tutti::emulation

template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t sharedBytes = 0,
                             cudaStream_t stream = nullptr) {
  return tutti::emulation::launchPointers(kernel, grid, block, arguments, sharedBytes, stream,
                                          std::index_sequence_for<P...>());
}

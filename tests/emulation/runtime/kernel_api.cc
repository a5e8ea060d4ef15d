#include <cuda_runtime_api.h>

#include <map>
#include <shared_mutex>

#include "emulation/runtime/device.h"
#include "emulation/runtime/error.h"
#include "emulation/runtime/launch.h"
#include "emulation/runtime/limits.h"

using namespace tutti::emulation;

namespace {

// How much dynamic shared memory kernels may have, where that was set.
class Allowances {
 public:
  size_t of(const void* kernel) const {
    const std::shared_lock lock(mutex_);
    const auto found = all_.find(kernel);
    return found == all_.end() ? kSharedBytes : found->second;
  }
  void set(const void* kernel, size_t bytes) {
    const std::unique_lock lock(mutex_);
    all_[kernel] = bytes;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<const void*, size_t> all_;
};

Allowances& allowances() {
  static auto* const all = new Allowances;  // outlives every thread of the program
  return *all;
}

bool within(const dim3& size, const int (&limits)[3]) {
  const unsigned sizes[] = {size.x, size.y, size.z};
  for (int i = 0; i < 3; ++i)
    if (sizes[i] == 0 || sizes[i] > static_cast<unsigned>(limits[i])) return false;
  return true;
}

cudaError_t check(const Launch& launch) {
  if (!launch.kernel) return cudaErrorInvalidDeviceFunction;
  if (!within(launch.grid, kMaxGrid) || !within(launch.block, kMaxThreadsDim)) return cudaErrorInvalidConfiguration;
  if (launch.block.x * launch.block.y * launch.block.z > kMaxThreads) return cudaErrorInvalidConfiguration;
  return launch.sharedBytes <= allowances().of(launch.kernel) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

cudaError_t tutti::emulation::submitLaunch(Launch launch, cudaStream_t handle) {
  const auto stream = streamOf(handle);
  if (!stream || &stream->device != &currentDevice()) return note(cudaErrorInvalidResourceHandle);
  if (const auto error = check(launch); error != cudaSuccess) return note(error);
  return note(submit(*stream, [launch = std::move(launch), &device = stream->device] {
    runGrid(launch, device.residency, device.failure);
  }));
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  if (!attributes || !kernel) return note(kernel ? cudaErrorInvalidValue : cudaErrorInvalidDeviceFunction);
  *attributes = {.sharedSizeBytes = 0,
                 .constSizeBytes = 0,
                 .localSizeBytes = 0,
                 .maxThreadsPerBlock = kMaxThreads,
                 .numRegs = 64,
                 .ptxVersion = 90,
                 .binaryVersion = 90,
                 .cacheModeCA = 0,
                 .maxDynamicSharedSizeBytes = static_cast<int>(allowances().of(kernel))};
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (!kernel) return note(cudaErrorInvalidDeviceFunction);
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      value > static_cast<int>(kSharedBytesOptIn))
    return note(cudaErrorInvalidValue);
  allowances().set(kernel, static_cast<size_t>(value));
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          size_t sharedBytes) {
  if (!kernel) return note(cudaErrorInvalidDeviceFunction);
  if (!blocks || threads <= 0) return note(cudaErrorInvalidValue);
  const bool possible = threads <= kMaxThreads && sharedBytes <= allowances().of(kernel);
  *blocks = possible ? static_cast<int>(currentDevice().blocksEach.load()) : 0;
  return cudaSuccess;
}

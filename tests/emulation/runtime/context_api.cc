// The driver's primary contexts, one a device. A device is its context.
#include <cuda.h>

#include "emulation/runtime/device.h"

using namespace tutti::emulation;

namespace {

CUcontext contextOf(Device& device) { return reinterpret_cast<CUcontext>(&device); }

}  // namespace

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!findDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  Device* device = findDevice(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  *context = contextOf(*device);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  return findDevice(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

// A thread that never turned to a device has no context, though the runtime calls device 0 its current one.
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = hasCurrentDevice() ? contextOf(currentDevice()) : nullptr;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  if (!context) return forgetCurrentDevice(), CUDA_SUCCESS;
  for (int i = 0; i < deviceCount(); ++i) {
    if (contextOf(*findDevice(i)) != context) continue;
    setCurrentDevice(i);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_CONTEXT;
}

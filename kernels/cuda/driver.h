// The few functions of the CUDA driver that the CUDA runtime has no equal of. Looked up at run time: the library links
// no driver, so that it loads on a machine without one.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

namespace tutti::cuda {

struct Driver {
  decltype(&cuCtxGetCurrent) getCurrent = nullptr;
  decltype(&cuCtxSetCurrent) setCurrent = nullptr;
  decltype(&cuDeviceGet) deviceGet = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) retainPrimary = nullptr;
  decltype(&cuDevicePrimaryCtxRelease) releasePrimary = nullptr;
  decltype(&cuMemGetAddressRange) addressRange = nullptr;
  decltype(&cuStreamBatchMemOp) words = nullptr;
  decltype(&cuDeviceGetAttribute) deviceAttribute = nullptr;
  // Virtual memory management.
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) unreserve = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) setAccess = nullptr;
  decltype(&cuMemExportToShareableHandle) exportHandle = nullptr;
  decltype(&cuMemImportFromShareableHandle) importHandle = nullptr;
  decltype(&cuMemRetainAllocationHandle) retainHandle = nullptr;
  decltype(&cuMemGetAllocationPropertiesFromHandle) propertiesOf = nullptr;
  decltype(&cuMemGetAccess) getAccess = nullptr;
  // Of any memory.
  decltype(&cuPointerGetAttribute) pointerAttribute = nullptr;
  decltype(&cuPointerSetAttribute) setPointerAttribute = nullptr;
  // Of memory that a network's devices reach; null where the driver has none of it.
  decltype(&cuMemGetHandleForAddressRange) rangeHandle = nullptr;
  decltype(&cuFlushGPUDirectRDMAWrites) flushWrites = nullptr;
};

// Throws Error(kCuda) when there is no driver, or one without them.
const Driver& driver();

// The driver's numbers are the runtime's wherever both have the error.
constexpr cudaError_t statusOf(CUresult result) noexcept { return static_cast<cudaError_t>(result); }

}  // namespace tutti::cuda

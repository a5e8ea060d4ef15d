// What CUDA says of memory that network devices reach by themselves. Here a network is the host's, and reaches it
// anyway.
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "emulation/control.h"
#include "emulation/runtime/capture.h"
#include "emulation/runtime/device.h"
#include "emulation/runtime/memory.h"
#include "emulation/runtime/network.h"

using namespace tutti::emulation;

namespace {

std::atomic<GpuDirect> direct{GpuDirect::kFlushed};
std::atomic<uint64_t> flushed{0};

// A context there must be, and no capture that the call could spoil.
CUresult allowed() {
  if (!hasCurrentDevice()) return CUDA_ERROR_INVALID_CONTEXT;
  return static_cast<CUresult>(unsafeCall());
}

}  // namespace

namespace tutti::emulation {

void setGpuDirect(GpuDirect now) { direct = now; }
uint64_t flushes() noexcept { return flushed; }

std::optional<int> networkAttribute(CUdevice_attribute attribute) noexcept {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
      return direct == GpuDirect::kJoined;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
      return direct != GpuDirect::kNone;
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
      return direct == GpuDirect::kFlushed;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS:
      return direct == GpuDirect::kFlushed ? CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST : 0;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
      return direct == GpuDirect::kInOrder || direct == GpuDirect::kJoined ? CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER
                                                                           : CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE;
    default:
      return std::nullopt;
  }
}

}  // namespace tutti::emulation

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope) {
  if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX || scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER)
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult error = allowed(); error != CUDA_SUCCESS) return error;
  if (direct != GpuDirect::kFlushed) return CUDA_ERROR_NOT_SUPPORTED;
  ++flushed;
  return CUDA_SUCCESS;
}

// A descriptor that no driver here takes for a dma-buf.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
                                       unsigned long long flags) {
  constexpr size_t kPage = 4096;
  if (const CUresult error = allowed(); error != CUDA_SUCCESS) return error;
  const auto known = memoryMap().find(reinterpret_cast<const void*>(address));
  if (!handle || !known || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags != 0 || address % kPage != 0 ||
      bytes % kPage != 0 || address + bytes > reinterpret_cast<CUdeviceptr>(known->data) + known->bytes)
    return CUDA_ERROR_INVALID_VALUE;
  const int made = memfd_create("emulated-dmabuf", MFD_CLOEXEC);
  if (made < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *static_cast<int*>(handle) = made;
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  if (const CUresult error = allowed(); error != CUDA_SUCCESS) return error;
  const bool known = memoryMap().find(reinterpret_cast<const void*>(address)).has_value();
  return value && known && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

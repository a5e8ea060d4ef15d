#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "emulation/runtime/device.h"
#include "emulation/runtime/memory.h"

using namespace tutti::emulation;

namespace {

bool holds(uint64_t current, uint64_t value, unsigned condition) {
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<int64_t>(current - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return current == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (current & value) != 0;
    default:
      return ~(current | value) != 0;
  }
}

CUresult check(const std::shared_ptr<Stream>& stream, CUdeviceptr address) {
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  const bool good = address % sizeof(uint64_t) == 0 && memoryMap().find(reinterpret_cast<const void*>(address));
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Nothing runs on the device meanwhile: other streams, of this process or another one, write the value.
void waitUntil(uint64_t* address, uint64_t value, unsigned condition, const Failure& failure) {
  const std::atomic_ref<uint64_t> word(*address);
  while (!holds(word.load(std::memory_order_acquire), value, condition) && !failure.happened())  // with its writer
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

// One of a batch. What it does is done later, in the stream.
CUresult toWork(const std::shared_ptr<Stream>& stream, const CUstreamBatchMemOpParams& params, Work& work) {
  const auto& op = params.waitValue;
  if (const auto error = check(stream, op.address); error != CUDA_SUCCESS) return error;
  auto* word = reinterpret_cast<uint64_t*>(op.address);
  if (params.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 && op.flags <= CU_STREAM_WAIT_VALUE_NOR) {
    work = [word, op, &failure = stream->device.failure] { waitUntil(word, op.value64, op.flags, failure); };
    return CUDA_SUCCESS;
  }
  if (params.operation != CU_STREAM_MEM_OP_WRITE_VALUE_64 || op.flags != CU_STREAM_WRITE_VALUE_DEFAULT)
    return CUDA_ERROR_NOT_SUPPORTED;
  // Release: with whoever waits for it.
  work = [word, op] { std::atomic_ref<uint64_t>(*word).store(op.value64, std::memory_order_release); };
  return CUDA_SUCCESS;
}

struct Symbol {
  const char* name;
  void* function;
};
template <class Function>
Symbol symbol(const char* name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

}  // namespace

CUresult cuStreamWaitValue64(CUstream handle, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  const auto stream = streamOf(handle);
  if (const auto error = check(stream, address); error != CUDA_SUCCESS) return error;
  if (flags & CU_STREAM_WAIT_VALUE_FLUSH) return CUDA_ERROR_NOT_SUPPORTED;
  if (flags > CU_STREAM_WAIT_VALUE_NOR) return CUDA_ERROR_INVALID_VALUE;
  auto* word = reinterpret_cast<uint64_t*>(address);
  return static_cast<CUresult>(
      submit(*stream, [=, &failure = stream->device.failure] { waitUntil(word, value, flags, failure); }));
}

CUresult cuStreamWriteValue64(CUstream handle, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  const auto stream = streamOf(handle);
  if (const auto error = check(stream, address); error != CUDA_SUCCESS) return error;
  if (flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) return CUDA_ERROR_INVALID_VALUE;
  const auto order = flags == CU_STREAM_WRITE_VALUE_DEFAULT ? std::memory_order_release : std::memory_order_relaxed;
  auto* word = reinterpret_cast<uint64_t*>(address);
  return static_cast<CUresult>(
      submit(*stream, [=] { std::atomic_ref<uint64_t>(*word).store(value, order); }));  // with whoever waits for it
}

CUresult cuStreamBatchMemOp(CUstream handle, unsigned count, CUstreamBatchMemOpParams* params, unsigned flags) {
  const auto stream = streamOf(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (count == 0 || count >= 256 || !params || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Work> all(count);
  for (unsigned i = 0; i < count; ++i)
    if (const auto error = toWork(stream, params[i], all[i]); error != CUDA_SUCCESS) return error;
  return static_cast<CUresult>(submit(*stream, [all = std::move(all)] {
    for (const Work& work : all) work();
  }));
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  const auto known = memoryMap().find(reinterpret_cast<const void*>(address));
  if (!known) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = reinterpret_cast<CUdeviceptr>(known->data);
  if (bytes) *bytes = known->bytes;
  return CUDA_SUCCESS;
}

// Nothing here is managed.
CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  const auto known = memoryMap().find(reinterpret_cast<const void*>(address));
  if (!value || !known) return CUDA_ERROR_INVALID_VALUE;
  const bool legacy = attribute == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE;
  *static_cast<unsigned*>(value) = legacy && known->kind == MemoryKind::kDevice;
  return CUDA_SUCCESS;
}

// The driver's errors have the runtime's numbers.
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = cudaGetErrorName(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  static const Symbol symbols[] = {
      symbol("cuStreamWaitValue64", cuStreamWaitValue64),
      symbol("cuStreamWriteValue64", cuStreamWriteValue64),
      symbol("cuStreamBatchMemOp", cuStreamBatchMemOp),
      symbol("cuMemGetAddressRange", cuMemGetAddressRange),
      symbol("cuDeviceGet", cuDeviceGet),
      symbol("cuDeviceGetAttribute", cuDeviceGetAttribute),
      symbol("cuMemGetAllocationGranularity", cuMemGetAllocationGranularity),
      symbol("cuMemCreate", cuMemCreate),
      symbol("cuMemRelease", cuMemRelease),
      symbol("cuMemAddressReserve", cuMemAddressReserve),
      symbol("cuMemAddressFree", cuMemAddressFree),
      symbol("cuMemMap", cuMemMap),
      symbol("cuMemUnmap", cuMemUnmap),
      symbol("cuMemSetAccess", cuMemSetAccess),
      symbol("cuMemExportToShareableHandle", cuMemExportToShareableHandle),
      symbol("cuMemImportFromShareableHandle", cuMemImportFromShareableHandle),
      symbol("cuMemRetainAllocationHandle", cuMemRetainAllocationHandle),
      symbol("cuMemGetAllocationPropertiesFromHandle", cuMemGetAllocationPropertiesFromHandle),
      symbol("cuMemGetAccess", cuMemGetAccess),
      symbol("cuPointerGetAttribute", cuPointerGetAttribute),
      symbol("cuPointerSetAttribute", cuPointerSetAttribute),
      symbol("cuMemGetHandleForAddressRange", cuMemGetHandleForAddressRange),
      symbol("cuFlushGPUDirectRDMAWrites", cuFlushGPUDirectRDMAWrites),
      symbol("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain),
      symbol("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease),
      symbol("cuCtxGetCurrent", cuCtxGetCurrent),
      symbol("cuCtxSetCurrent", cuCtxSetCurrent),
      symbol("cuGetErrorString", cuGetErrorString),
      symbol("cuGetErrorName", cuGetErrorName)};
  if (!name || !function) return cudaErrorInvalidValue;
  const auto* found = std::find_if(std::begin(symbols), std::end(symbols),
                                   [&](const Symbol& symbol) { return std::strcmp(symbol.name, name) == 0; });
  const bool known = found != std::end(symbols), recent = version <= CUDART_VERSION;
  *function = known && recent ? found->function : nullptr;
  if (result)
    *result = !known    ? cudaDriverEntryPointSymbolNotFound
              : !recent ? cudaDriverEntryPointVersionNotSufficent
                        : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

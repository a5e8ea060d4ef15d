#include "kernels/cuda/driver.h"

#include "kernels/cuda/check.h"
#include "process/process_object.h"

namespace tutti::cuda {
namespace {

// The interface of CUDA 12.0, which every driver that this build accepts has.
constexpr unsigned kInterface = 12000;

// Leaves null what there is not.
template <class Function>
void findIfAny(Function*& function, const char* name) {
  void* address = nullptr;
  auto result = cudaDriverEntryPointSymbolNotFound;
  check(cudaGetDriverEntryPointByVersion(name, &address, kInterface, cudaEnableDefault, &result), -1,
        "asking the driver for {}", name);
  if (result == cudaDriverEntryPointSuccess) function = reinterpret_cast<Function*>(address);
}

template <class Function>
void find(Function*& function, const char* name) {
  findIfAny(function, name);
  if (function == nullptr)
    throw Error(ErrorCode::kCuda, fmt::format("the CUDA driver has no {}: install a newer driver", name));
}

Driver findAll() {
  Driver found;
  find(found.getCurrent, "cuCtxGetCurrent");
  find(found.setCurrent, "cuCtxSetCurrent");
  find(found.deviceGet, "cuDeviceGet");
  find(found.retainPrimary, "cuDevicePrimaryCtxRetain");
  find(found.releasePrimary, "cuDevicePrimaryCtxRelease");
  find(found.addressRange, "cuMemGetAddressRange");
  find(found.words, "cuStreamBatchMemOp");
  find(found.deviceAttribute, "cuDeviceGetAttribute");
  find(found.granularity, "cuMemGetAllocationGranularity");
  find(found.create, "cuMemCreate");
  find(found.release, "cuMemRelease");
  find(found.reserve, "cuMemAddressReserve");
  find(found.unreserve, "cuMemAddressFree");
  find(found.map, "cuMemMap");
  find(found.unmap, "cuMemUnmap");
  find(found.setAccess, "cuMemSetAccess");
  find(found.exportHandle, "cuMemExportToShareableHandle");
  find(found.importHandle, "cuMemImportFromShareableHandle");
  find(found.retainHandle, "cuMemRetainAllocationHandle");
  find(found.propertiesOf, "cuMemGetAllocationPropertiesFromHandle");
  find(found.getAccess, "cuMemGetAccess");
  find(found.pointerAttribute, "cuPointerGetAttribute");
  findIfAny(found.setPointerAttribute, "cuPointerSetAttribute");
  findIfAny(found.rangeHandle, "cuMemGetHandleForAddressRange");
  findIfAny(found.flushWrites, "cuFlushGPUDirectRDMAWrites");
  return found;
}

}  // namespace

const Driver& driver() {
  struct Found {
    const Driver driver = findAll();
  };
  return ofThisProcess<Found>().driver;
}

}  // namespace tutti::cuda

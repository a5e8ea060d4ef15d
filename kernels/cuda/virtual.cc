#include "kernels/cuda/virtual.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/check.h"
#include "kernels/cuda/driver.h"
#include "process/log.h"

namespace tutti::cuda {
namespace {

bool has(CUdevice_attribute attribute, int gpu) {
  CUdevice device = 0;
  int value = 0;
  check(statusOf(driver().deviceGet(&device, gpu)), gpu, "looking for the GPU");
  return driver().deviceAttribute(&value, attribute, device) == CUDA_SUCCESS && value != 0;
}

CUmemAllocationProp propertiesFor(const Context& context, int handles) noexcept {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handles);
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = context.ordinal();
  return properties;
}

}  // namespace

size_t Virtual::wholeBytes(const Context& context, size_t bytes, int handles) {
  const auto properties = propertiesFor(context, handles);
  size_t granule = 0;
  check(statusOf(driver().granularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)), context.ordinal(),
        "asking in which pieces memory comes");
  return (std::max<size_t>(bytes, 1) + granule - 1) / granule * granule;
}

std::unique_ptr<Virtual> Virtual::make(const SharedContext& context, size_t bytes, Use use) noexcept try {
  const int gpu = context->ordinal();
  if (!has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, gpu)) return nullptr;
  const bool descriptor =
      use == Use::kUsers && has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, gpu);
  const int plain = descriptor ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  if (has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, gpu))
    if (auto made = tryToMake(context, bytes, plain | CU_MEM_HANDLE_TYPE_FABRIC)) return made;
  return use == Use::kUsers ? tryToMake(context, bytes, plain) : nullptr;
} catch (const std::exception& error) {
  log::info("{}; ordinary memory of the GPU is used", error.what());
  return nullptr;
}

std::unique_ptr<Virtual> Virtual::tryToMake(const SharedContext& context, size_t bytes, int handles) try {
  const RelaxedCaptureScope aside(*context);
  std::unique_ptr<Virtual> made(new Virtual(context));
  made->bytes_ = wholeBytes(*context, bytes, handles);
  made->create(propertiesFor(*context, handles));
  if (handles & CU_MEM_HANDLE_TYPE_FABRIC) made->exportToFabric();
  made->map();
  made->openForAll();
  return made;
} catch (const Error& error) {
  log::info("{}; memory that is less shareable is used", error.what());
  return nullptr;
}

std::unique_ptr<Virtual> Virtual::import(const SharedContext& context, void* shareable, CUmemAllocationHandleType type,
                                         size_t wholeBytes, const char* remedy) {
  const RelaxedCaptureScope aside(*context);
  std::unique_ptr<Virtual> made(new Virtual(context));
  made->bytes_ = wholeBytes;
  CUmemGenericAllocationHandle physical = 0;
  check(statusOf(driver().importHandle(&physical, shareable, type)), context->ordinal(),
        "mapping {} bytes of another process ({})", wholeBytes, remedy);
  made->physical_ = physical;
  made->map();
  made->open(context->ordinal());
  return made;
}

std::unique_ptr<Virtual> Virtual::import(const SharedContext& context, const FabricHandle& handle, size_t wholeBytes) {
  FabricHandle copy = handle;
  return import(context, copy.data(), CU_MEM_HANDLE_TYPE_FABRIC, wholeBytes,
                "over the fabric: both GPUs must be in one partition of it, and the processes must share an IMEX "
                "channel");
}

std::unique_ptr<Virtual> Virtual::import(const SharedContext& context, int descriptor, size_t wholeBytes) {
  return import(context, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, wholeBytes,
                "by a descriptor: this GPU must reach the one that has the memory");
}

// In the order opposite to how it came to be. Whatever uses the memory has ended.
Virtual::~Virtual() {
  const int gpu = context_->ordinal();
  if (mapped_) complain(statusOf(driver().unmap(address_, bytes_)), gpu, "unmapping memory");
  if (address_ != 0) complain(statusOf(driver().unreserve(address_, bytes_)), gpu, "giving addresses back");
  if (physical_) complain(statusOf(driver().release(*physical_)), gpu, "freeing memory");
}

void Virtual::create(const CUmemAllocationProp& properties) {
  CUmemGenericAllocationHandle physical = 0;
  check(statusOf(driver().create(&physical, bytes_, &properties, 0)), context_->ordinal(),
        "making {} bytes that can be shared", bytes_);
  physical_ = physical;
}

// A GPU may say that it has a fabric where the system does not let this process use it: only trying tells.
void Virtual::exportToFabric() {
  const int gpu = context_->ordinal();
  FabricHandle handle{};
  check(statusOf(driver().exportHandle(handle.data(), *physical_, CU_MEM_HANDLE_TYPE_FABRIC, 0)), gpu,
        "exporting {} bytes to the fabric", bytes_);
  FabricHandle copy = handle;
  CUmemGenericAllocationHandle again = 0;
  check(statusOf(driver().importHandle(&again, copy.data(), CU_MEM_HANDLE_TYPE_FABRIC)), gpu,
        "trying a handle of the fabric");
  check(statusOf(driver().release(again)), gpu, "giving a handle of the fabric back");
  fabric_ = handle;
}

// The mapping keeps the physical memory, so its handle has served.
void Virtual::map() {
  const int gpu = context_->ordinal();
  check(statusOf(driver().reserve(&address_, bytes_, 0, 0, 0)), gpu, "reserving addresses for {} bytes", bytes_);
  check(statusOf(driver().map(address_, bytes_, 0, *physical_, 0)), gpu, "mapping {} bytes", bytes_);
  mapped_ = true;
  check(statusOf(driver().release(*std::exchange(physical_, std::nullopt))), gpu, "letting go of memory");
}

void Virtual::open(int gpu) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = gpu;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  check(statusOf(driver().setAccess(address_, bytes_, &access, 1)), gpu, "being let into {} bytes of GPU {}", bytes_,
        context_->ordinal());
}

// Other GPUs of this process as far as they can.
void Virtual::openForAll() {
  open(context_->ordinal());
  int count = 0, can = 0;
  check(cudaGetDeviceCount(&count), -1, "counting the GPUs");
  for (int gpu = 0; gpu < count; ++gpu) {
    if (gpu == context_->ordinal()) continue;
    if (cudaDeviceCanAccessPeer(&can, gpu, context_->ordinal()) != cudaSuccess || can == 0) continue;
    try {
      open(gpu);
    } catch (const Error& error) {
      log::info("{}", error.what());
    }
  }
  cudaGetLastError();
}

}  // namespace tutti::cuda

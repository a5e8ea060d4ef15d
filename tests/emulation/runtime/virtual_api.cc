// Virtual memory management: physical memory, addresses, and the one mapped at the other, each with a life of its own.
// Physical memory is a memfd; a fabric handle says, as one of CUDA IPC does, which descriptor of which process holds
// it.
#include <cuda.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "emulation/control.h"
#include "emulation/device/sanitizers.h"
#include "emulation/device/shared_memory.h"
#include "emulation/runtime/device.h"
#include "emulation/runtime/limits.h"
#include "emulation/runtime/memory.h"
#include "emulation/runtime/network.h"

using namespace tutti::emulation;

namespace {

constexpr size_t kGranularity = 2 << 20;
constexpr uint64_t kFabricMagic = 0x6362616669747475;

std::atomic<Sharing> sharing{std::getenv("TUTTI_TEST_FABRIC") != nullptr ? Sharing::kFabric : Sharing::kVirtual};

struct Physical {
  Physical(int descriptor, size_t size, int ordinal, unsigned kinds)
      : fd(descriptor), bytes(size), device(ordinal), handleTypes(kinds) {}
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;
  ~Physical() { close(fd); }
  int fd;
  size_t bytes;
  int device;
  unsigned handleTypes;
};

struct FabricHandle {
  uint64_t magic;
  int32_t pid, fd;
  uint64_t inode, bytes;
  int32_t device;
};
static_assert(sizeof(FabricHandle) <= sizeof(CUmemFabricHandle));

struct Reservation {
  std::byte* whole;
  size_t wholeBytes, bytes;
};
struct Mapping {
  size_t bytes;
  std::shared_ptr<Physical> physical;
  bool accessible;
  uint32_t open = 0;  // a bit for each device that has been let in
};

struct State {
  std::mutex mutex;
  uint64_t last = 0;
  std::map<CUmemGenericAllocationHandle, std::shared_ptr<Physical>> handles;
  std::map<CUdeviceptr, Reservation> reserved;
  std::map<CUdeviceptr, Mapping> mapped;
};
State& state() {
  static auto* const state = new State;  // outlives every thread of the program
  return *state;
}

bool whole(size_t bytes) { return bytes > 0 && bytes % kGranularity == 0; }

unsigned handleTypesHere() {
  const unsigned fabric = sharing == Sharing::kFabric ? CU_MEM_HANDLE_TYPE_FABRIC : 0;
  return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | fabric;
}

CUresult add(CUmemGenericAllocationHandle* handle, std::shared_ptr<Physical> physical) {
  const std::lock_guard lock(state().mutex);
  *handle = ++state().last;
  state().handles.emplace(*handle, std::move(physical));
  return CUDA_SUCCESS;
}

std::shared_ptr<Physical> find(CUmemGenericAllocationHandle handle) {
  const auto found = state().handles.find(handle);
  return found == state().handles.end() ? nullptr : found->second;
}

// Needs the mutex. Whether the range lies in one reservation, and nothing is mapped there.
bool isFree(CUdeviceptr address, size_t bytes) {
  auto around = state().reserved.upper_bound(address);
  if (around == state().reserved.begin()) return false;
  --around;
  if (address + bytes > around->first + around->second.bytes) return false;
  const auto next = state().mapped.lower_bound(address);
  if (next != state().mapped.end() && next->first < address + bytes) return false;
  return next == state().mapped.begin() || std::prev(next)->first + std::prev(next)->second.bytes <= address;
}

// Needs the mutex.
const Mapping* mappingAround(CUdeviceptr address) {
  const auto next = state().mapped.upper_bound(address);
  if (next == state().mapped.begin()) return nullptr;
  const auto& [begin, mapping] = *std::prev(next);
  return address < begin + mapping.bytes ? &mapping : nullptr;
}

std::byte* bytesAt(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }

bool good(const CUmemAccessDesc& access) {
  const auto flags = access.flags;
  return access.location.type == CU_MEM_LOCATION_TYPE_DEVICE && findDevice(access.location.id) &&
         (flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
          flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

CUresult importFabric(CUmemGenericAllocationHandle* handle, const CUmemFabricHandle* shareable) {
  if (sharing != Sharing::kFabric) return CUDA_ERROR_NOT_PERMITTED;
  FabricHandle fabric;
  std::memcpy(&fabric, shareable, sizeof fabric);
  if (fabric.magic != kFabricMagic) return CUDA_ERROR_INVALID_VALUE;
  const auto path = fmt::format("/proc/{}/fd/{}", fabric.pid, fabric.fd);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return CUDA_ERROR_INVALID_VALUE;
  auto physical = std::make_shared<Physical>(fd, fabric.bytes, fabric.device, CU_MEM_HANDLE_TYPE_FABRIC);
  if (inodeOf(fd) != fabric.inode) return CUDA_ERROR_INVALID_VALUE;
  return add(handle, std::move(physical));
}

CUresult importDescriptor(CUmemGenericAllocationHandle* handle, int given) {
  struct stat status {};
  if (fstat(given, &status) != 0 || !whole(static_cast<size_t>(status.st_size))) return CUDA_ERROR_INVALID_VALUE;
  const int fd = fcntl(given, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return CUDA_ERROR_INVALID_VALUE;
  return add(handle, std::make_shared<Physical>(fd, static_cast<size_t>(status.st_size), currentDevice().ordinal,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
}

}  // namespace

namespace tutti::emulation {
void setSharing(Sharing now) { sharing = now; }
}  // namespace tutti::emulation

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (!value || !findDevice(device)) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) {
    *value = findDevice(device)->streamsWait;
    return CUDA_SUCCESS;
  }
  if (const auto said = networkAttribute(attribute)) return *value = *said, CUDA_SUCCESS;
  const bool fabric = attribute == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED;
  *value = fabric ? sharing == Sharing::kFabric : sharing != Sharing::kNone;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  if (sharing == Sharing::kNone) return CUDA_ERROR_NOT_SUPPORTED;
  if (!granularity || !properties || !findDevice(properties->location.id)) return CUDA_ERROR_INVALID_VALUE;
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                     unsigned long long flags) {
  if (sharing == Sharing::kNone) return CUDA_ERROR_NOT_SUPPORTED;
  if (!handle || !properties || flags != 0 || !whole(bytes) || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !findDevice(properties->location.id))
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->requestedHandleTypes & ~handleTypesHere()) return CUDA_ERROR_NOT_SUPPORTED;
  if (bytes > kDeviceBytes || memoryMap().deviceBytes() + bytes > kDeviceBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const int fd = memfd_create("tutti-emulated-physical", MFD_CLOEXEC);
  if (fd < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  auto physical = std::make_shared<Physical>(fd, bytes, properties->location.id, properties->requestedHandleTypes);
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  // Nobody may rely on zeros: the first page has none.
  std::byte poison[4096];
  std::memset(poison, kPoison, sizeof poison);
  if (pwrite(fd, poison, sizeof poison, 0) != sizeof poison) return CUDA_ERROR_OUT_OF_MEMORY;
  return add(handle, std::move(physical));
}

// What is mapped lives on.
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(state().mutex);
  return state().handles.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr,
                             unsigned long long flags) {
  if (sharing == Sharing::kNone) return CUDA_ERROR_NOT_SUPPORTED;
  if (!address || flags != 0 || !whole(bytes) || (alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t step = std::max(alignment, kGranularity), wholeBytes = bytes + 2 * step;
  void* all = mmap(nullptr, wholeBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = (reinterpret_cast<CUdeviceptr>(all) + step - 1) / step * step;
  const std::lock_guard lock(state().mutex);
  state().reserved.emplace(*address, Reservation{static_cast<std::byte*>(all), wholeBytes, bytes});
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().reserved.find(address);
  if (found == state().reserved.end() || found->second.bytes != bytes || !isFree(address, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  munmap(found->second.whole, found->second.wholeBytes);
  state().reserved.erase(found);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  const std::lock_guard lock(state().mutex);
  auto physical = find(handle);
  if (!physical || flags != 0 || offset != 0 || bytes != physical->bytes || !isFree(address, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  // A mapping counts as a write by this thread. Who uses it may have heard of it by another process, which nobody sees.
  sanitizers::stopWatching();
  const void* const mapped = mmap(bytesAt(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->fd, 0);
  sanitizers::goOnWatching();
  if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  state().mapped.emplace(address, Mapping{bytes, std::move(physical), false, 0});
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().mapped.find(address);
  if (found == state().mapped.end() || found->second.bytes != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (found->second.accessible) memoryMap().take(bytesAt(address), MemoryKind::kVirtual);
  mmap(bytesAt(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  state().mapped.erase(found);
  return CUDA_SUCCESS;
}

// What the emulated devices are let into is noted, and nothing more: once one is, any thread gets there.
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* accesses, size_t count) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().mapped.find(address);
  if (found == state().mapped.end() || found->second.bytes != bytes || !accesses || count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i)
    if (!good(accesses[i])) return CUDA_ERROR_INVALID_DEVICE;
  for (size_t i = 0; i < count; ++i)
    if (accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) found->second.open |= 1u << accesses[i].location.id;
  if (found->second.accessible || accesses[0].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_SUCCESS;
  if (mprotect(bytesAt(address), bytes, PROT_READ | PROT_WRITE) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  found->second.accessible = true;
  memoryMap().add({bytesAt(address), bytes, MemoryKind::kVirtual, found->second.physical->device, nullptr});
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  std::shared_ptr<Physical> physical;
  {
    const std::lock_guard lock(state().mutex);
    const Mapping* const mapping = mappingAround(reinterpret_cast<CUdeviceptr>(address));
    if (!handle || !mapping) return CUDA_ERROR_INVALID_VALUE;
    physical = mapping->physical;
  }
  return add(handle, std::move(physical));
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties, CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(state().mutex);
  const auto physical = find(handle);
  if (!properties || !physical) return CUDA_ERROR_INVALID_VALUE;
  *properties = {};
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->requestedHandleTypes = static_cast<CUmemAllocationHandleType>(physical->handleTypes);
  properties->location = {CU_MEM_LOCATION_TYPE_DEVICE, physical->device};
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  const std::lock_guard lock(state().mutex);
  const Mapping* const mapping = mappingAround(address);
  if (!flags || !location || !findDevice(location->id) || !mapping) return CUDA_ERROR_INVALID_VALUE;
  const bool open = (mapping->open >> location->id & 1) != 0;
  *flags = open ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  const std::lock_guard lock(state().mutex);
  const auto physical = find(handle);
  if (!shareable || !physical || flags != 0 || (physical->handleTypes & type) == 0) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    const int fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0);
    std::memcpy(shareable, &fd, sizeof fd);
    return fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  }
  const FabricHandle fabric{kFabricMagic,          getpid(),        physical->fd,
                            inodeOf(physical->fd), physical->bytes, physical->device};
  std::memset(shareable, 0, sizeof(CUmemFabricHandle));
  std::memcpy(shareable, &fabric, sizeof fabric);
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
  if (sharing == Sharing::kNone) return CUDA_ERROR_NOT_SUPPORTED;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return importDescriptor(handle, static_cast<int>(reinterpret_cast<intptr_t>(shareable)));
  if (type != CU_MEM_HANDLE_TYPE_FABRIC || !shareable) return CUDA_ERROR_INVALID_VALUE;
  return importFabric(handle, static_cast<const CUmemFabricHandle*>(shareable));
}

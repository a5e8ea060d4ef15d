#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "emulation/device/sanitizers.h"
#include "emulation/device/shared_memory.h"
#include "emulation/runtime/capture.h"
#include "emulation/runtime/device.h"
#include "emulation/runtime/error.h"
#include "emulation/runtime/limits.h"
#include "emulation/runtime/memory.h"

using namespace tutti::emulation;

namespace {

constexpr size_t kAlignment = 256, kPage = 4096;

// The end lies at the page that nobody may touch, as near as the alignment lets it: who goes beyond is found out.
cudaError_t allocate(void** out, size_t bytes, MemoryKind kind) {
  if (!out) return cudaErrorInvalidValue;
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (bytes > kDeviceBytes || memoryMap().deviceBytes() + bytes > kDeviceBytes) return cudaErrorMemoryAllocation;
  const size_t room = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  std::shared_ptr<Pages> pages = Pages::create(room);
  if (!pages) return cudaErrorMemoryAllocation;
  std::byte* data = pages->data() + pages->bytes() - room;
  std::memset(data, kPoison, bytes);
  sanitizers::forbid(data + bytes, room - bytes);
  memoryMap().add({data, bytes, kind, currentDevice().ordinal, std::move(pages)});
  *out = data;
  return cudaSuccess;
}

void release(const Memory& memory) {
  if (memory.pages) sanitizers::allow(memory.pages->data(), memory.pages->bytes());
}

// cudaFree and its like wait for the device: who calls them beside a kernel that waits for this thread has a deadlock.
cudaError_t freeAfterAll(void* memory, std::initializer_list<MemoryKind> kinds) {
  if (!memory) return cudaSuccess;
  const auto known = memoryMap().find(memory);
  if (!known || known->data != memory || std::count(kinds.begin(), kinds.end(), known->kind) == 0)
    return cudaErrorInvalidValue;
  const auto error = findDevice(known->device) ? findDevice(known->device)->synchronize() : cudaSuccess;
  const auto taken = memoryMap().take(memory, known->kind);
  if (!taken) return cudaErrorInvalidValue;
  release(*taken);
  if (taken->kind == MemoryKind::kHost) std::free(memory);
  return error;
}

cudaError_t allocateHost(void** out, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if (!out || flags & ~kKnown) return cudaErrorInvalidValue;
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (posix_memalign(out, kPage, bytes) != 0) return cudaErrorMemoryAllocation;
  std::memset(*out, kPoison, bytes);
  memoryMap().add({static_cast<std::byte*>(*out), bytes, MemoryKind::kHost, currentDevice().ordinal, nullptr});
  return cudaSuccess;
}

template <class Call>
cudaError_t outsideOfCaptures(Call call) {
  const auto error = unsafeCall();
  return note(error == cudaSuccess ? call() : error);
}

}  // namespace

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return outsideOfCaptures([&] { return allocate(memory, bytes, MemoryKind::kDevice); });
}

cudaError_t cudaFree(void* memory) {
  return outsideOfCaptures([&] { return freeAfterAll(memory, {MemoryKind::kDevice, MemoryKind::kDeviceAsync}); });
}

// Usable at once: earlier than CUDA says, which nobody can tell from a fast device.
cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t handle) {
  const auto stream = streamOf(handle);
  if (!stream) return note(cudaErrorInvalidResourceHandle);
  if (stream->capturing) return note(spoil(*stream, cudaErrorStreamCaptureUnsupported));
  return note(allocate(memory, bytes, MemoryKind::kDeviceAsync));
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t handle) {
  const auto stream = streamOf(handle);
  if (!stream) return note(cudaErrorInvalidResourceHandle);
  if (stream->capturing) return note(spoil(*stream, cudaErrorStreamCaptureUnsupported));
  const auto known = memoryMap().find(memory);
  if (!known || known->data != memory || known->kind != MemoryKind::kDeviceAsync) return note(cudaErrorInvalidValue);
  return note(submit(*stream, [memory] {
    if (const auto taken = memoryMap().take(memory, MemoryKind::kDeviceAsync)) release(*taken);
  }));
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = kDeviceBytes;
  *free = kDeviceBytes - std::min(kDeviceBytes, memoryMap().deviceBytes());
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags) {
  return outsideOfCaptures([&] { return allocateHost(memory, bytes, flags); });
}

cudaError_t cudaMallocHost(void** memory, size_t bytes, unsigned flags) { return cudaHostAlloc(memory, bytes, flags); }

cudaError_t cudaFreeHost(void* memory) {
  return outsideOfCaptures([&] { return freeAfterAll(memory, {MemoryKind::kHost}); });
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = cudaHostRegisterPortable | cudaHostRegisterMapped;
  return outsideOfCaptures([&] {
    if (!memory || bytes == 0) return cudaErrorInvalidValue;
    if (flags & ~kKnown) return cudaErrorNotSupported;
    Memory region{static_cast<std::byte*>(memory), bytes, MemoryKind::kRegistered, currentDevice().ordinal, nullptr};
    return memoryMap().add(region) ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered;
  });
}

cudaError_t cudaHostUnregister(void* memory) {
  return outsideOfCaptures([&] {
    const auto known = memoryMap().find(memory);
    if (!known || known->kind != MemoryKind::kRegistered) return cudaErrorHostMemoryNotRegistered;
    return freeAfterAll(memory, {MemoryKind::kRegistered});
  });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  const auto known = memoryMap().find(host);
  if (!device || flags != 0 || !known || known->ofDevice()) return note(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (!attributes) return note(cudaErrorInvalidValue);
  const auto known = memoryMap().find(pointer);
  void* address = const_cast<void*>(pointer);
  if (!known) {
    *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, address};  // -2: cudaInvalidDeviceId
  } else if (known->ofDevice()) {
    *attributes = {cudaMemoryTypeDevice, known->device, address, nullptr};
  } else {
    *attributes = {cudaMemoryTypeHost, known->device, address, address};
  }
  return cudaSuccess;
}

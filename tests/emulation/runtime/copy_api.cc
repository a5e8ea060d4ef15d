#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "emulation/runtime/capture.h"
#include "emulation/runtime/device.h"
#include "emulation/runtime/error.h"
#include "emulation/runtime/memory.h"

using namespace tutti::emulation;

namespace {

enum class Where { kAnywhere, kDevice };

// Memory that CUDA knows has to hold the whole range; what is said to be a device's has to be known.
bool fits(const void* address, size_t bytes, Where where) {
  const auto known = memoryMap().find(address);
  if (!known) return where == Where::kAnywhere;
  return bytes <= static_cast<size_t>(known->data + known->bytes - static_cast<const std::byte*>(address));
}

cudaError_t check(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  const bool toDevice = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool fromDevice = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool good = fits(to, bytes, toDevice ? Where::kDevice : Where::kAnywhere) &&
                    fits(from, bytes, fromDevice ? Where::kDevice : Where::kAnywhere);
  return good ? cudaSuccess : cudaErrorInvalidValue;
}

// A few aligned words are copied as such, and what was written before each is seen after it, as on a GPU: acquire and
// release pair with those of streams that wait for words, write them and copy them, and with looks of running kernels.
constexpr size_t kMostWords = 8;
bool areWords(const void* to, const void* from, size_t bytes) {
  constexpr size_t kWord = sizeof(uint64_t);
  return bytes % kWord == 0 && bytes <= kMostWords * kWord &&
         (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % kWord == 0;
}
void copyWords(void* to, const void* from, size_t bytes) {
  auto* const sources = static_cast<uint64_t*>(const_cast<void*>(from));
  auto* const words = static_cast<uint64_t*>(to);
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) {
    const uint64_t word = std::atomic_ref(sources[i]).load(std::memory_order_acquire);
    std::atomic_ref(words[i]).store(word, std::memory_order_release);
  }
}

Work copying(void* to, const void* from, size_t bytes) {
  if (areWords(to, from, bytes)) return [=] { copyWords(to, from, bytes); };
  return [=] { std::memmove(to, from, bytes); };
}

cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, Stream& stream, bool wait) {
  if (bytes == 0) return cudaSuccess;
  auto error = check(to, from, bytes, kind);
  if (error == cudaSuccess) error = submit(stream, copying(to, from, bytes));
  if (error != cudaSuccess || !wait || stream.capturing) return error;
  return synchronize(stream);
}

cudaError_t set(void* memory, int value, size_t bytes, Stream& stream) {
  if (bytes == 0) return cudaSuccess;
  if (!fits(memory, bytes, Where::kDevice)) return cudaErrorInvalidValue;
  return submit(stream, [=] { std::memset(memory, value, bytes); });
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const auto error = unsafeCall();
  return note(error == cudaSuccess ? copy(to, from, bytes, kind, *currentDevice().legacy, true) : error);
}

// From and to host memory that is not pinned, CUDA returns when that memory may be used again. So does this.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  const auto stream = streamOf(handle);
  if (!stream) return note(cudaErrorInvalidResourceHandle);
  const bool pinned = memoryMap().find(to) && memoryMap().find(from);
  return note(copy(to, from, bytes, kind, *stream, !pinned));
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  const auto error = unsafeCall();
  return note(error == cudaSuccess ? set(memory, value, bytes, *currentDevice().legacy) : error);
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t handle) {
  const auto stream = streamOf(handle);
  return note(stream ? set(memory, value, bytes, *stream) : cudaErrorInvalidResourceHandle);
}

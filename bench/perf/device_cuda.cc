// GPUs through the CUDA runtime: which there are, their memory and their streams.
#include "perf/device_cuda.h"

#include <fmt/format.h>

#include "perf/device.h"
#include "perf/failure.h"

namespace tutti::perf::device {

void check(cudaError_t result, int device, const char* what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // it is told of here: the next call must not find it
  throw Failure(fmt::format("GPU {}: {}: {}: {}", device, what, cudaGetErrorName(result), cudaGetErrorString(result)));
}

void use(int device) { check(cudaSetDevice(device), device, "choosing it"); }

int count() {
  int devices = 0;
  const cudaError_t result = cudaGetDeviceCount(&devices);
  if (result == cudaSuccess && devices > 0) return devices;
  throw UsageError(fmt::format("--device cuda: no GPU can be used here: {}",
                               result == cudaSuccess ? "there is none" : cudaGetErrorString(result)));
}

Identity identify(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), device, "asking for its properties");
  return {properties.name,
          fmt::format("{:04x}:{:02x}:{:02x}", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID)};
}

void* allocate(int device, size_t bytes) {
  use(device);
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), device, "allocating a buffer (choose a smaller --maxbytes)");
  check(cudaMemset(memory, 0, bytes), device, "clearing a buffer");
  // A memset returns before it is done, and the streams of newStream() do not wait for it.
  check(cudaStreamSynchronize(nullptr), device, "clearing a buffer");
  return memory;
}

void release(int device, void* memory) noexcept {
  if (memory == nullptr) return;
  cudaSetDevice(device);
  cudaFree(memory);
}

void copyIn(int device, void* to, const void* from, size_t bytes) {
  use(device);
  check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), device, "copying to it");
  // From pageable memory the copy may return while its last part is still on its way.
  check(cudaStreamSynchronize(nullptr), device, "copying to it");
}

void copyOut(int device, void* to, const void* from, size_t bytes) {
  use(device);
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), device, "copying from it");
}

tuttiStream_t newStream(int device) {
  use(device);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), device, "making a stream");
  return stream;
}

void synchronize(const Queue& queue) {
  use(queue.device);
  check(cudaStreamSynchronize(queue.stream), queue.device, "waiting for a stream");
}

void destroy(const Queue& queue) noexcept {
  if (queue.stream == nullptr) return;
  cudaSetDevice(queue.device);
  cudaStreamDestroy(queue.stream);
}

}  // namespace tutti::perf::device

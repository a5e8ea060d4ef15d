// Memory that the GPU can reach: its own, pinned memory of the host, and host memory that was there before.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

#include "device/device.h"
#include "kernels/cuda/context.h"

namespace tutti::cuda {

using SharedContext = std::shared_ptr<const Context>;

class Virtual;

// A run of bytes of the GPU. Shared: another rank of this process that imports it owns it too.
class DeviceBytes {
 public:
  // Zeroed, by way of `side`, which has no other work to wait for.
  DeviceBytes(SharedContext context, size_t bytes, cudaStream_t side);
  DeviceBytes(SharedContext context, std::unique_ptr<Virtual> memory, size_t bytes, cudaStream_t side);
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes();
  const Context& context() const noexcept { return *context_; }
  std::byte* data() const noexcept { return data_; }
  size_t bytes() const noexcept { return bytes_; }
  // Null: it is cudaMalloc()'s.
  const Virtual* asVirtual() const noexcept { return virtual_.get(); }

 private:
  cudaError_t clear(cudaStream_t side) noexcept;
  SharedContext context_;
  std::unique_ptr<Virtual> virtual_;
  std::byte* data_ = nullptr;
  size_t bytes_;
};

// The allocation that an address is in, as the driver knows it. Throws Error(kCuda) where there is none.
struct Allocation {
  std::byte* begin = nullptr;
  size_t bytes = 0;
};
Allocation allocationAround(const Context& context, const std::byte* at);

// What allocate() gives out, and what an import within the process does.
struct BlockMemory : device::DeviceMemory {
  explicit BlockMemory(std::shared_ptr<const DeviceBytes> shared);
  std::shared_ptr<const DeviceBytes> block;
};

std::unique_ptr<device::DeviceMemory> allocatePinned(SharedContext context, size_t bytes);
std::unique_ptr<device::DeviceMemory> pin(SharedContext context, std::byte* data, size_t bytes);

// Logs what went wrong while something was given back: a destructor has nobody to tell.
void complain(cudaError_t status, int ordinal, const char* attempt) noexcept;

}  // namespace tutti::cuda

// Memory of the GPU that a network's devices read and write by themselves (GPUDirect RDMA): what CUDA says of it, and
// how a device's driver gets to it.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "kernels/cuda/memory.h"
#include "link/gpu_slots.h"

namespace tutti::cuda {

// Why there is none; empty: there may be.
std::string lackForNetwork(const Context& context);

// Zeroed by way of `side`; needs !lackForNetwork(). Throws Error(kCuda).
std::unique_ptr<link::GpuSlots> allocateForNetwork(SharedContext context, size_t bytes, cudaStream_t side,
                                                   device::MemoryPort& port);

}  // namespace tutti::cuda

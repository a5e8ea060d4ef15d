#include "gpu/managed_memory.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <new>

namespace tutti::test {
namespace {

constexpr size_t kAlignment = 256;  // what CUDA promises

// What is to begin at a multiple of more is cut from the middle of an allocation, whose begin stands in front of it.
class Managed : public std::pmr::memory_resource {
  void* do_allocate(size_t bytes, size_t alignment) override {
    const size_t space = alignment > kAlignment ? alignment : 0;
    void* memory = nullptr;
    if (cudaMallocManaged(&memory, bytes + space) != cudaSuccess) throw std::bad_alloc();
    if (space == 0) return memory;
    const auto place = (reinterpret_cast<uintptr_t>(memory) / alignment + 1) * alignment;
    reinterpret_cast<void**>(place)[-1] = memory;
    return reinterpret_cast<void*>(place);
  }
  void do_deallocate(void* memory, size_t, size_t alignment) override {
    cudaFree(alignment > kAlignment ? static_cast<void**>(memory)[-1] : memory);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

std::pmr::memory_resource& managedMemory() {
  static auto* const upstream = new Managed;
  static auto* const pools = new std::pmr::synchronized_pool_resource(
      std::pmr::pool_options{.max_blocks_per_chunk = 64, .largest_required_pool_block = 1 << 20}, upstream);
  return *pools;
}

}  // namespace tutti::test

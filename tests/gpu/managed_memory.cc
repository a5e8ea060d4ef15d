#include "gpu/managed_memory.h"

#include <cuda_runtime.h>

#include <new>

namespace tutti::test {
namespace {

class Managed : public std::pmr::memory_resource {
  void* do_allocate(size_t bytes, size_t alignment) override {
    constexpr size_t kAlignment = 256;  // what CUDA promises
    void* memory = nullptr;
    if (alignment > kAlignment || cudaMallocManaged(&memory, bytes) != cudaSuccess) throw std::bad_alloc();
    return memory;
  }
  void do_deallocate(void* memory, size_t, size_t) override { cudaFree(memory); }
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

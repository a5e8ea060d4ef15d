// Memory of tests that streams can copy from and to without waiting for the host, as that of GPUs: pinned.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <memory_resource>
#include <new>

namespace tutti::test {

class PinnedMemory : public std::pmr::memory_resource {
  void* do_allocate(size_t bytes, size_t) override {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, std::max<size_t>(bytes, 1), cudaHostAllocMapped) != cudaSuccess) throw std::bad_alloc();
    return memory;
  }
  void do_deallocate(void* memory, size_t, size_t) override { (void)cudaFreeHost(memory); }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

// What operations of tests lay their buffers into while this lives.
class InPinnedMemory {
 public:
  InPinnedMemory() : before_(std::pmr::set_default_resource(&pinned_)) {}
  ~InPinnedMemory() { std::pmr::set_default_resource(before_); }
  InPinnedMemory(const InPinnedMemory&) = delete;
  InPinnedMemory& operator=(const InPinnedMemory&) = delete;

 private:
  PinnedMemory pinned_;
  std::pmr::memory_resource* before_;
};

}  // namespace tutti::test

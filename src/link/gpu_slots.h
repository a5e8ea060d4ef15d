// Slots of a link that lie in memory of a GPU, which a network's devices read and write by themselves (GPUDirect): the
// port to who has such memory. Headers and counters stay in the host's memory, where drivers look at them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tutti::link {

// Whatever it may hold at first. The processor reaches it through these functions alone.
class GpuSlots {
 public:
  virtual ~GpuSlots() = default;
  virtual std::byte* data() const noexcept = 0;
  virtual size_t bytes() const noexcept = 0;
  // A descriptor of a dma-buf that holds it, which stays this object's; -1: there is none. And its begin in that.
  virtual int dmabuf() const noexcept = 0;
  virtual uint64_t dmabufOffset() const noexcept = 0;
  // Whether what a device has written there is seen by the GPU only after flush().
  virtual bool needsFlush() const noexcept = 0;
  // Any thread. False: it has failed.
  virtual bool flush() noexcept = 0;
  // For set-up; they wait. Throw Error.
  virtual void write(std::byte* to, const void* from, size_t bytes) = 0;
  virtual void read(void* to, const std::byte* from, size_t bytes) = 0;
};

// Of one GPU. Any thread.
class GpuSlotSource {
 public:
  virtual ~GpuSlotSource() = default;
  // Why there are none; empty: there may be.
  virtual std::string lack() const = 0;
  // Throws Error.
  virtual std::unique_ptr<GpuSlots> make(size_t bytes) const = 0;
};

}  // namespace tutti::link

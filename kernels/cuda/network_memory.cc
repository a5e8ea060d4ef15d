#include "kernels/cuda/network_memory.h"

#include <utility>

#include "kernels/cuda/check.h"
#include "kernels/cuda/driver.h"
#include "process/fd.h"
#include "process/log.h"

namespace tutti::cuda {
namespace {

// Whole pages of the host and of the GPU: what a dma-buf is made of, and what a driver pins.
constexpr size_t kGranule = 64 << 10;

int attributeOf(const Context& context, CUdevice_attribute attribute) {
  CUdevice device = 0;
  int value = 0;
  check(statusOf(driver().deviceGet(&device, context.ordinal())), context.ordinal(), "asking which GPU it is");
  check(statusOf(driver().deviceAttribute(&value, attribute, device)), context.ordinal(), "asking what the GPU can");
  return value;
}

// Whether the GPU sees by itself what comes from outside, in the order in which it comes. Of generations before Hopper
// NCCL does not rely on that (ncclTopoNeedFlush), so nor do we.
bool seesWrites(const Context& context) {
  return attributeOf(context, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9 &&
         attributeOf(context, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING) >=
             CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER;
}
// Whether the GPU reads headers in the host's memory another way than the one on which payloads come to its own.
bool hasAWayOfItsOwn(const Context& context) {
  return attributeOf(context, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES) != 0;
}
bool hostFlushes(const Context& context) {
  return (attributeOf(context, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS) &
          CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST) != 0;
}

class NetworkMemory final : public link::GpuSlots {
 public:
  NetworkMemory(SharedContext context, size_t bytes, cudaStream_t side, device::MemoryPort& port)
      : port_(port),
        bytes_((bytes + kGranule - 1) / kGranule * kGranule),
        block_(std::move(context), bytes_ + kGranule, side),
        needsFlush_(!seesWrites(block_.context())) {
    const RelaxedCaptureScope aside(block_.context());
    const auto address = reinterpret_cast<uintptr_t>(block_.data());
    data_ = block_.data() + (kGranule - address % kGranule) % kGranule;
    copySynchronously();
    if (attributeOf(block_.context(), CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) != 0) exportDmabuf();
  }

  std::byte* data() const noexcept override { return data_; }
  size_t bytes() const noexcept override { return bytes_; }
  int dmabuf() const noexcept override { return dmabuf_.get(); }
  uint64_t dmabufOffset() const noexcept override { return 0; }
  bool needsFlush() const noexcept override { return needsFlush_; }
  bool flush() noexcept override {
    try {
      const RelaxedCaptureScope aside(block_.context());
      return driver().flushWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                  CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER) == CUDA_SUCCESS;
    } catch (const std::exception&) {
      return false;
    }
  }
  void write(std::byte* to, const void* from, size_t bytes) override { port_.copy(to, from, bytes); }
  void read(void* to, const std::byte* from, size_t bytes) override { port_.copy(to, from, bytes); }

 private:
  // Copies of the runtime's from and to this memory are over when they say so, also for a device that then reads it.
  void copySynchronously() {
    unsigned yes = 1;
    check(statusOf(driver().setPointerAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                                reinterpret_cast<CUdeviceptr>(block_.data()))),
          block_.context().ordinal(), "preparing memory for the network");
  }
  // Where there is none, a device's driver may still know the memory by its address.
  void exportDmabuf() {
    int made = -1;
    const CUresult status = driver().rangeHandle(&made, reinterpret_cast<CUdeviceptr>(data_), bytes_,
                                                 CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    if (status == CUDA_SUCCESS)
      dmabuf_ = UniqueFd(made);
    else
      log::info("GPU {} makes no dma-buf of its memory ({})", block_.context().ordinal(),
                cudaGetErrorString(statusOf(status)));
  }

  device::MemoryPort& port_;
  size_t bytes_;
  DeviceBytes block_;
  bool needsFlush_;
  std::byte* data_ = nullptr;
  UniqueFd dmabuf_;  // closed before the memory goes
};

}  // namespace

std::string lackForNetwork(const Context& context) {
  if (driver().setPointerAttribute == nullptr || driver().rangeHandle == nullptr || driver().flushWrites == nullptr)
    return "the CUDA driver has no functions for memory that a network reaches";
  if (attributeOf(context, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED) == 0)
    return fmt::format("GPU {} lets no network device at its memory (GPUDirect RDMA)", context.ordinal());
  if (hasAWayOfItsOwn(context))
    return fmt::format(
        "GPU {} is joined to the host's memory by a link of its own, beside which a network's writes to "
        "its memory come in no known order",
        context.ordinal());
  if (!seesWrites(context) && !hostFlushes(context))
    return fmt::format("GPU {} does not see in order what a network writes to its memory, and can not be made to",
                       context.ordinal());
  return {};
}

std::unique_ptr<link::GpuSlots> allocateForNetwork(SharedContext context, size_t bytes, cudaStream_t side,
                                                   device::MemoryPort& port) {
  return std::make_unique<NetworkMemory>(std::move(context), bytes, side, port);
}

}  // namespace tutti::cuda

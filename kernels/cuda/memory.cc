#include "kernels/cuda/memory.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/cuda/check.h"
#include "kernels/cuda/driver.h"
#include "kernels/cuda/virtual.h"
#include "process/log.h"
#include "process/process_object.h"

namespace tutti::cuda {
namespace {

// Runs `free`, beside all streams, in a destructor.
template <class Free>
void giveBack(const Context& context, const char* attempt, Free&& free) noexcept {
  try {
    const RelaxedCaptureScope aside(context);
    complain(free(), context.ordinal(), attempt);
  } catch (const std::exception& error) {
    log::warn("{}", error.what());
  }
}

// The same address for the host and the GPU is what the FIFOs of a link rely on: both follow the pointers in them.
void requireSameAddress(const Context& context, std::byte* host) {
  void* device = nullptr;
  check(cudaHostGetDevicePointer(&device, host, 0), context.ordinal(), "mapping pinned memory of the host");
  if (device != host)
    throw Error(ErrorCode::kCuda,
                fmt::format("GPU {} sees pinned memory of the host at another address ({} instead of {}): it has no "
                            "unified addressing, which is needed; use another GPU or another operating mode of it",
                            context.ordinal(), device, static_cast<const void*>(host)));
}

// cudaHostAlloc()'s.
class Pinned : public device::DeviceMemory {
 public:
  Pinned(SharedContext context, size_t count) : context_(std::move(context)) {
    const RelaxedCaptureScope aside(*context_);
    void* made = nullptr;
    check(cudaHostAlloc(&made, std::max<size_t>(count, 1), cudaHostAllocMapped | cudaHostAllocPortable),
          context_->ordinal(), "allocating {} bytes of pinned memory of the host", count);
    data = static_cast<std::byte*>(made);
    bytes = count;
    std::memset(data, 0, bytes);
  }
  ~Pinned() override {
    giveBack(*context_, "freeing pinned memory of the host", [this] { return cudaFreeHost(data); });
  }
  const Context& context() const noexcept { return *context_; }

 private:
  SharedContext context_;
};

// Someone else's memory, pinned for as long as this lives, for all GPUs of the process.
class Pin {
 public:
  Pin(SharedContext context, std::byte* host, size_t bytes) : context_(std::move(context)), host_(host), bytes_(bytes) {
    const RelaxedCaptureScope aside(*context_);
    check(cudaHostRegister(host, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable), context_->ordinal(),
          "pinning {} bytes of the host's memory (the limit is `ulimit -l`)", bytes);
  }
  ~Pin() {
    giveBack(*context_, "unpinning memory of the host", [this] { return cudaHostUnregister(host_); });
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  bool isOf(const std::byte* host, size_t bytes) const noexcept { return host == host_ && bytes == bytes_; }

 private:
  SharedContext context_;
  std::byte* host_;
  size_t bytes_;
};

// Ranks of one process may share what they have between them, and memory can be pinned once only.
class Pins {
 public:
  std::shared_ptr<const Pin> pin(const SharedContext& context, std::byte* host, size_t bytes) {
    const std::lock_guard lock(mutex_);
    std::erase_if(pins_, [](const auto& pin) { return pin.expired(); });
    for (const auto& known : pins_)
      if (auto pin = known.lock(); pin && pin->isOf(host, bytes)) return pin;
    auto made = std::make_shared<const Pin>(context, host, bytes);
    pins_.push_back(made);
    return made;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::vector<std::weak_ptr<const Pin>> pins_;
};

class Registered : public device::DeviceMemory {
 public:
  Registered(SharedContext context, std::byte* host, size_t count)
      : context_(std::move(context)), pin_(ofThisProcess<Pins>().pin(context_, host, count)) {
    data = host;
    bytes = count;
  }
  const Context& context() const noexcept { return *context_; }

 private:
  SharedContext context_;
  std::shared_ptr<const Pin> pin_;
};

template <class Memory>
std::unique_ptr<device::DeviceMemory> checked(std::unique_ptr<Memory> memory) {
  const RelaxedCaptureScope aside(memory->context());
  requireSameAddress(memory->context(), memory->data);
  return memory;
}

}  // namespace

void complain(cudaError_t status, int ordinal, const char* attempt) noexcept {
  if (status == cudaSuccess) return;
  log::warn("{}", errorOrOutOfMemory([&] { return errorOf(status, ordinal, attempt); }).what());
}

DeviceBytes::DeviceBytes(SharedContext context, size_t bytes, cudaStream_t side)
    : context_(std::move(context)), bytes_(bytes) {
  const RelaxedCaptureScope aside(*context_);
  const int gpu = context_->ordinal();
  void* made = nullptr;
  check(cudaMalloc(&made, std::max<size_t>(bytes, 1)), gpu, "allocating {} bytes", bytes);
  data_ = static_cast<std::byte*>(made);
  const cudaError_t status = clear(side);
  if (status == cudaSuccess) return;
  complain(cudaFree(data_), gpu, "freeing memory");
  throw errorOf(status, gpu, fmt::format("zeroing {} bytes", bytes));
}

DeviceBytes::DeviceBytes(SharedContext context, std::unique_ptr<Virtual> memory, size_t bytes, cudaStream_t side)
    : context_(std::move(context)), virtual_(std::move(memory)), data_(virtual_->data()), bytes_(bytes) {
  const RelaxedCaptureScope aside(*context_);
  check(clear(side), context_->ordinal(), "zeroing {} bytes", bytes);
}

cudaError_t DeviceBytes::clear(cudaStream_t side) noexcept {
  const cudaError_t status = cudaMemsetAsync(data_, 0, bytes_, side);
  return status == cudaSuccess ? cudaStreamSynchronize(side) : status;
}

// cudaFree() waits for all that runs on the GPU: whoever frees has ended its own kernels before.
DeviceBytes::~DeviceBytes() {
  if (!virtual_) giveBack(*context_, "freeing memory", [this] { return cudaFree(data_); });
}

Allocation allocationAround(const Context& context, const std::byte* at) {
  CUdeviceptr begin = 0;
  size_t bytes = 0;
  check(statusOf(driver().addressRange(&begin, &bytes, reinterpret_cast<CUdeviceptr>(at))), context.ordinal(),
        "asking how large an allocation is");
  return {reinterpret_cast<std::byte*>(begin), bytes};
}

BlockMemory::BlockMemory(std::shared_ptr<const DeviceBytes> shared) : block(std::move(shared)) {
  data = block->data();
  bytes = block->bytes();
}

std::unique_ptr<device::DeviceMemory> allocatePinned(SharedContext context, size_t bytes) {
  return checked(std::make_unique<Pinned>(std::move(context), bytes));
}

std::unique_ptr<device::DeviceMemory> pin(SharedContext context, std::byte* data, size_t bytes) {
  return checked(std::make_unique<Registered>(std::move(context), data, bytes));
}

}  // namespace tutti::cuda

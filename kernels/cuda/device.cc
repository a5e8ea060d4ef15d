#include "device/device.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <mutex>

#include "kernels/cuda/check.h"
#include "kernels/cuda/collective.h"
#include "kernels/cuda/driver.h"
#include "kernels/cuda/fold_launch.h"
#include "kernels/cuda/ipc.h"
#include "kernels/cuda/network_memory.h"
#include "kernels/cuda/nvml.h"
#include "kernels/cuda/open.h"
#include "kernels/cuda/order.h"
#include "kernels/cuda/pattern.h"
#include "kernels/cuda/residency.h"
#include "kernels/cuda/side_queue.h"
#include "kernels/cuda/trace.h"
#include "kernels/cuda/users_buffer.h"
#include "kernels/cuda/virtual.h"

namespace tutti::cuda {
namespace {

cudaDeviceProp propertiesOf(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), ordinal, "asking what the GPU is like");
  return properties;
}

// Nobody needs it that much. In small letters, as the kernel's files have it.
std::string busIdOf(int ordinal) {
  char text[32] = {};
  if (cudaDeviceGetPCIBusId(text, sizeof text, ordinal) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  std::string id = text;
  std::ranges::transform(id, id.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return id;
}

// Also loads every kernel: later, one that waits for its peers could stand in the way.
device::DeviceTraits traitsOf(const Context& context) {
  const RelaxedCaptureScope aside(context);
  const cudaDeviceProp properties = propertiesOf(context.ordinal());
  int resident = 0;
  check(loadKernels(resident), context.ordinal(), "loading the collective kernels");
  check(loadPatternKernels(), context.ordinal(), "loading the kernels of the self-test");
  check(loadFoldKernel(), context.ordinal(), "loading the kernel that reduces without waiting");
  device::DeviceTraits traits;
  traits.name = properties.name;
  static_assert(sizeof properties.uuid.bytes == sizeof traits.uuid);
  std::memcpy(traits.uuid.data(), properties.uuid.bytes, sizeof traits.uuid);
  traits.busId = busIdOf(context.ordinal());
  traits.major = properties.major;
  traits.minor = properties.minor;
  traits.multiprocessors = static_cast<uint32_t>(properties.multiProcessorCount);
  traits.threadsPerBlock = threadsPerBlock();
  traits.residentBlocks = traits.multiprocessors * static_cast<uint32_t>(resident);
  return traits;
}

Collective kindOf(const KernelWork& work) { return static_cast<Collective>(work.fingerprint.kindAndType >> 4); }

class Gpu : public device::Device {
 public:
  explicit Gpu(int ordinal)
      : context_(std::make_shared<Context>(ordinal)),
        traits_(traitsOf(*context_)),
        residency_(ordinal, traits_.residentBlocks),
        side_(context_, true),
        wrong_(context_, sizeof(uint32_t), side_.get()) {}

  int ordinal() const noexcept override { return context_->ordinal(); }
  const device::DeviceTraits& traits() const noexcept override { return traits_; }

  std::unique_ptr<device::DeviceMemory> allocate(size_t bytes) override {
    return std::make_unique<BlockMemory>(std::make_shared<const DeviceBytes>(context_, bytes, side_.get()));
  }
  std::unique_ptr<device::DeviceMemory> allocateForUsers(size_t bytes) override {
    return allocateVirtual(bytes, Virtual::Use::kUsers);
  }
  std::unique_ptr<device::DeviceMemory> allocateForPeers(size_t bytes) override {
    return allocateVirtual(bytes, Virtual::Use::kPeers);
  }
  std::unique_ptr<link::GpuSlots> allocateForNetwork(size_t bytes) override {
    return cuda::allocateForNetwork(context_, bytes, side_.get(), *this);
  }
  std::string lackForNetwork() const override { return cuda::lackForNetwork(*context_); }
  std::unique_ptr<device::DeviceMemory> allocatePinned(size_t bytes) override {
    return cuda::allocatePinned(context_, bytes);
  }
  std::unique_ptr<device::DeviceMemory> pin(std::byte* data, size_t bytes) override {
    return cuda::pin(context_, data, bytes);
  }

  Bytes exportMemory(const device::DeviceMemory& memory) const override;
  std::unique_ptr<device::DeviceMemory> importMemory(std::span<const std::byte> exported, bool here) override;
  bool goesToOtherHosts(std::span<const std::byte> exported) const override {
    return Exported::read(exported).fabric.has_value();
  }
  std::vector<device::GpuLinkType> jointsTo(std::span<const Bytes> exported, std::string& why) const override;
  device::BufferOffer offerBuffer(const std::byte* buffer, size_t bytes) override {
    return cuda::offerBuffer(*context_, buffer, bytes);
  }
  std::unique_ptr<device::DeviceMemory> acceptBuffer(std::span<const std::byte> record,
                                                     const UniqueFd& descriptor) override {
    return cuda::acceptBuffer(context_, record, descriptor);
  }
  bool opensTo(const std::byte* buffer, int peerOrdinal) override {
    return cuda::opensTo(*context_, buffer, peerOrdinal);
  }
  bool reach(int peerOrdinal, std::string& why) override;
  void copy(void* to, const void* from, size_t bytes) override;

  void writePattern(std::byte* to, size_t bytes, uint64_t seed) override;
  bool checkPattern(const std::byte* from, size_t bytes, uint64_t seed) override;

  uint32_t freeBlocks() const noexcept override { return residency_.free(); }
  void reserve(uint32_t blocks) override { residency_.reserve(blocks); }
  void giveBack(uint32_t blocks) noexcept override { residency_.giveBack(blocks); }

  std::unique_ptr<device::LaunchOrder> newOrder() override { return std::make_unique<Order>(context_); }
  void launch(const KernelLaunch& launch, uint32_t blocks, std::span<const device::DeviceStream> streams,
              std::span<device::LaunchOrder* const> orders) override;
  bool streamsWait(std::string& why) noexcept override;
  std::unique_ptr<device::SideQueue> newSideQueue() override { return std::make_unique<StreamQueue>(context_); }
  void beside(std::span<device::SideQueue* const> queues, std::span<const device::DeviceStream> streams,
              std::span<device::LaunchOrder* const> orders, const std::function<void()>& queueAll) override;
  uint64_t readWord(const uint64_t* word) override {
    uint64_t value = 0;
    copy(&value, word, sizeof value);
    return value;
  }
  void writeWords(std::span<const device::WordOp> ops) override;
  bool captures(device::DeviceStream stream) override {
    const OnDevice device(*context_);
    return StreamState::of(stream, ordinal()).captures();
  }
  void drain(device::LaunchOrder& order) override { static_cast<Order&>(order).drain(); }
  bool finished(device::LaunchOrder& order) noexcept override { return static_cast<Order&>(order).finished(); }

 private:
  std::unique_ptr<device::DeviceMemory> allocateVirtual(size_t bytes, Virtual::Use use);
  SharedContext context_;
  device::DeviceTraits traits_;
  Residency residency_;
  OwnStream side_;       // for what is done beside all others
  std::mutex checking_;  // guards wrong_
  DeviceBytes wrong_;    // what a check of a pattern counts in
};

std::unique_ptr<device::DeviceMemory> Gpu::allocateVirtual(size_t bytes, Virtual::Use use) {
  auto memory = Virtual::make(context_, bytes, use);
  if (!memory) return allocate(bytes);
  return std::make_unique<BlockMemory>(
      std::make_shared<const DeviceBytes>(context_, std::move(memory), bytes, side_.get()));
}

Bytes Gpu::exportMemory(const device::DeviceMemory& memory) const {
  const auto* own = dynamic_cast<const BlockMemory*>(&memory);
  if (own == nullptr)
    throw Error(ErrorCode::kInternal, "only memory that a GPU allocated here can be exported to another process");
  return exportBlock(own->block, traits_.uuid);
}

std::unique_ptr<device::DeviceMemory> Gpu::importMemory(std::span<const std::byte> bytes, bool here) {
  const Exported exported = Exported::read(bytes);
  if (!here) return mapExported(context_, exported);
  auto block = findBlock(exported);
  std::string why;
  if (!reach(block->context().ordinal(), why)) throw Error(ErrorCode::kCuda, why);
  return std::make_unique<BlockMemory>(std::move(block));
}

std::vector<device::GpuLinkType> Gpu::jointsTo(std::span<const Bytes> exported, std::string& why) const {
  std::vector<device::Uuid> uuids;
  for (const Bytes& record : exported) uuids.push_back(Exported::read(record).uuid);
  return jointsOf(traits_.uuid, uuids, why);
}

bool Gpu::reach(int peerOrdinal, std::string& why) {
  if (peerOrdinal == ordinal()) return true;
  const RelaxedCaptureScope aside(*context_);
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, ordinal(), peerOrdinal), ordinal(), "asking whether GPU {} can be reached",
        peerOrdinal);
  if (can == 0) {
    why = fmt::format("GPU {} cannot reach the memory of GPU {}: neither NVLink nor PCIe peer access joins them",
                      ordinal(), peerOrdinal);
    return false;
  }
  const cudaError_t status = cudaDeviceEnablePeerAccess(peerOrdinal, 0);
  const bool reached = status == cudaSuccess || status == cudaErrorPeerAccessAlreadyEnabled;
  cudaGetLastError();
  if (!reached) why = errorOf(status, ordinal(), fmt::format("reaching the memory of GPU {}", peerOrdinal)).what();
  return reached;
}

void Gpu::copy(void* to, const void* from, size_t bytes) {
  const RelaxedCaptureScope aside(*context_);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, side_.get()), ordinal(), "copying {} bytes", bytes);
  side_.finish("copying");
}

void Gpu::writePattern(std::byte* to, size_t bytes, uint64_t seed) {
  const RelaxedCaptureScope aside(*context_);
  check(launchWritePattern(to, bytes, seed, side_.get()), ordinal(), "writing a pattern of {} bytes", bytes);
  side_.finish("writing a pattern");
}

bool Gpu::checkPattern(const std::byte* from, size_t bytes, uint64_t seed) {
  const std::lock_guard lock(checking_);
  const RelaxedCaptureScope aside(*context_);
  auto* counter = reinterpret_cast<uint32_t*>(wrong_.data());
  uint32_t wrong = 0;
  copy(counter, &wrong, sizeof wrong);
  check(launchCheckPattern(from, bytes, seed, counter, side_.get()), ordinal(), "checking a pattern of {} bytes",
        bytes);
  copy(&wrong, counter, sizeof wrong);
  return wrong == 0;
}

void Gpu::launch(const KernelLaunch& launch, uint32_t blocks, std::span<const device::DeviceStream> streams,
                 std::span<device::LaunchOrder* const> orders) {
  const TraceRange range(launch.count == 1 ? nameOf(kindOf(launch.works[0])).data() : "group");
  const OnDevice device(*context_);
  StreamFork turn(*context_, streams, orders);
  check(launchCollective(launch, blocks, turn.stream()), ordinal(), "launching {} blocks of the collective kernel",
        blocks);
  turn.end();
}

bool Gpu::streamsWait(std::string& why) noexcept try {
  CUdevice device = 0;
  int waits = 0;
  check(statusOf(driver().deviceGet(&device, ordinal())), ordinal(), "looking for the GPU");
  check(statusOf(driver().deviceAttribute(&waits, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device)),
        ordinal(), "asking whether streams can wait for words in memory");
  if (waits == 0) why = fmt::format("the streams of GPU {} can not wait for words of 64 bits in memory", ordinal());
  return waits != 0;
} catch (const std::exception& error) {
  setText(why, error.what());
  return false;
}

void Gpu::beside(std::span<device::SideQueue* const> queues, std::span<const device::DeviceStream> streams,
                 std::span<device::LaunchOrder* const> orders, const std::function<void()>& queueAll) {
  const TraceRange range("streamed");
  const OnDevice device(*context_);
  StreamFork turn(*context_, streams, orders);
  for (device::SideQueue* const queue : queues) static_cast<StreamQueue*>(queue)->enter(turn.place());
  const auto join = [&] {
    for (device::SideQueue* const queue : queues) static_cast<StreamQueue*>(queue)->leave(turn.place());
    turn.end();
  };
  try {
    queueAll();
  } catch (...) {
    join();  // a capture with a branch that comes back from nowhere could not end
    throw;
  }
  join();
}

void Gpu::writeWords(std::span<const device::WordOp> ops) {
  const RelaxedCaptureScope aside(*context_);
  queueWords(side_.get(), ops, ordinal());
  side_.finish("writing words");
}

}  // namespace

std::shared_ptr<device::Device> makeGpu(int ordinal) { return std::make_shared<Gpu>(ordinal); }

}  // namespace tutti::cuda

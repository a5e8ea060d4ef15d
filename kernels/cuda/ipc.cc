#include "kernels/cuda/ipc.h"

#include <unistd.h>

#include <bit>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/random.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/driver.h"
#include "process/process_object.h"

namespace tutti::cuda {
namespace {

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(device::MemoryHandle));
static_assert(sizeof(FabricHandle) == sizeof(device::MemoryHandle));

// The blocks that this process exported, while they live. What crosses the control plane is a ticket and never a
// pointer: bytes from outside must not be dereferenced. It is drawn, so that only who was told it can name it. The
// process itself is what two such ranks share, so this table hangs on the process.
class Tickets {
 public:
  static Tickets& ofProcess() { return ofThisProcess<Tickets>(); }
  uint64_t leave(const std::shared_ptr<const DeviceBytes>& block) {
    const std::lock_guard lock(mutex_);
    std::erase_if(blocks_, [](const auto& entry) { return entry.second.expired(); });
    for (const auto& [ticket, left] : blocks_)
      if (left.lock() == block) return ticket;
    return blocks_.emplace(randomNumber(), block).first->first;
  }
  std::shared_ptr<const DeviceBytes> find(uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(ticket);
    return found == blocks_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::unordered_map<uint64_t, std::weak_ptr<const DeviceBytes>> blocks_;
};

// Another process's memory, mapped for as long as this lives.
class Mapped : public device::DeviceMemory {
 public:
  Mapped(SharedContext context, const Exported& exported) : context_(std::move(context)) {
    const RelaxedCaptureScope aside(*context_);
    void* mapped = nullptr;
    const auto handle = std::bit_cast<cudaIpcMemHandle_t>(*exported.handle);
    check(cudaIpcOpenMemHandle(&mapped, handle, cudaIpcMemLazyEnablePeerAccess), context_->ordinal(),
          "mapping {} bytes of a GPU's memory from process {} (both processes must run as one user, see the GPU that "
          "has the memory, and share the IPC and PID namespaces of a container)",
          exported.bytes, exported.pid);
    base_ = static_cast<std::byte*>(mapped);
    data = base_ + exported.offset;
    bytes = exported.bytes;
  }
  ~Mapped() override {
    try {
      const RelaxedCaptureScope aside(*context_);
      complain(cudaIpcCloseMemHandle(base_), context_->ordinal(), "unmapping another process's memory");
    } catch (const std::exception&) {
      complain(cudaErrorDevicesUnavailable, context_->ordinal(), "unmapping another process's memory");
    }
  }
  // The record's word is not enough: the mapping must be as long as it says.
  void checkLength() const {
    const RelaxedCaptureScope aside(*context_);
    const Allocation all = allocationAround(*context_, base_);
    const auto inFront = static_cast<size_t>(base_ - all.begin);
    const size_t mapped = all.bytes - inFront;
    const auto offset = static_cast<size_t>(data - base_);
    if (offset > mapped || bytes > mapped - offset)
      throw Error(ErrorCode::kRemote,
                  fmt::format("a peer announced {} bytes of a GPU's memory at {} and exported {} in "
                              "all: the ranks do not run the same version, or the record is damaged",
                              bytes, offset, mapped));
  }

 private:
  SharedContext context_;
  std::byte* base_ = nullptr;
};

// The same over the fabric; there the length is the driver's to check.
class OverFabric : public device::DeviceMemory {
 public:
  OverFabric(const SharedContext& context, const Exported& exported)
      : memory_(Virtual::import(context, *exported.fabric,
                                Virtual::wholeBytes(*context, exported.bytes, CU_MEM_HANDLE_TYPE_FABRIC))) {
    data = memory_->data();
    bytes = exported.bytes;
  }

 private:
  std::unique_ptr<Virtual> memory_;
};

// None for memory that only the fabric can hand out, or nothing.
std::optional<device::MemoryHandle> ipcHandleOf(const DeviceBytes& block, const Allocation& all) {
  if (block.asVirtual() != nullptr) return std::nullopt;
  cudaIpcMemHandle_t handle{};
  check(cudaIpcGetMemHandle(&handle, all.begin), block.context().ordinal(), "exporting {} bytes", block.bytes());
  return std::bit_cast<device::MemoryHandle>(handle);
}

std::optional<device::MemoryHandle> fabricHandleOf(const DeviceBytes& block) {
  return block.asVirtual() == nullptr ? std::nullopt : block.asVirtual()->fabric();
}

}  // namespace

Bytes exportBlock(const std::shared_ptr<const DeviceBytes>& block, const Uuid& uuid) {
  const RelaxedCaptureScope aside(block->context());
  const bool isWhole = block->asVirtual() != nullptr;
  const Allocation all =
      isWhole ? Allocation{block->data(), block->bytes()} : allocationAround(block->context(), block->data());
  Exported exported;
  exported.pid = ::getpid();
  exported.ticket = Tickets::ofProcess().leave(block);
  exported.uuid = uuid;
  exported.bytes = block->bytes();
  exported.offset = static_cast<uint64_t>(block->data() - all.begin);
  exported.handle = ipcHandleOf(*block, all);
  exported.fabric = fabricHandleOf(*block);
  return encode(exported);
}

std::shared_ptr<const DeviceBytes> findBlock(const Exported& exported) {
  auto block = Tickets::ofProcess().find(exported.ticket);
  if (!block)
    throw Error(ErrorCode::kRemote,
                "the GPU memory that a rank of this process announced is not there: it has given up");
  if (exported.bytes != block->bytes())
    throw Error(ErrorCode::kRemote,
                fmt::format("a rank of this process announced {} bytes of a GPU's memory, and there "
                            "are {}",
                            exported.bytes, block->bytes()));
  return block;
}

std::unique_ptr<device::DeviceMemory> mapExported(SharedContext context, const Exported& exported) {
  if (exported.fabric) return std::make_unique<OverFabric>(context, exported);
  if (!exported.handle)
    throw Error(ErrorCode::kCuda, fmt::format("GPU {}: {} bytes of process {} are for that process alone",
                                              context->ordinal(), exported.bytes, exported.pid));
  auto mapped = std::make_unique<Mapped>(std::move(context), exported);
  mapped->checkLength();
  return mapped;
}

}  // namespace tutti::cuda

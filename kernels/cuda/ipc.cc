#include "kernels/cuda/ipc.h"

#include <sys/random.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/process_object.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/driver.h"

namespace tutti::cuda {
namespace {

constexpr uint32_t kMemoryMagic = 0x74754d32;  // names the form of the record, and changes with it

uint64_t processNumber() {
  struct Drawn {
    Drawn() {
      if (::getrandom(&number, sizeof number, 0) != sizeof number) throw systemError("drawing a random number", errno);
    }
    uint64_t number = 0;
  };
  return ofThisProcess<Drawn>().number;
}

// The blocks that this process exported, while they live. What crosses the control plane is a ticket and never a
// pointer: bytes from outside must not be dereferenced. The process itself is what two such ranks share, so this table
// hangs on the process.
class Tickets {
 public:
  static Tickets& ofProcess() { return ofThisProcess<Tickets>(); }
  uint64_t leave(const std::shared_ptr<const DeviceBytes>& block) {
    const std::lock_guard lock(mutex_);
    std::erase_if(blocks_, [](const auto& entry) { return entry.second.expired(); });
    for (const auto& [ticket, left] : blocks_)
      if (left.lock() == block) return ticket;
    blocks_.emplace(++last_, block);
    return last_;
  }
  std::shared_ptr<const DeviceBytes> find(uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(ticket);
    return found == blocks_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  uint64_t last_ = 0;
  std::unordered_map<uint64_t, std::weak_ptr<const DeviceBytes>> blocks_;
};

// Another process's memory, mapped for as long as this lives.
class Mapped : public engine::DeviceMemory {
 public:
  Mapped(SharedContext context, const Exported& exported) : context_(std::move(context)) {
    const Aside aside(*context_);
    void* mapped = nullptr;
    check(cudaIpcOpenMemHandle(&mapped, *exported.handle, cudaIpcMemLazyEnablePeerAccess), context_->ordinal(),
          "mapping {} bytes of a GPU's memory from process {} (both processes must run as one user, see the GPU that "
          "has the memory, and share the IPC and PID namespaces of a container)",
          exported.bytes, exported.pid);
    base_ = static_cast<std::byte*>(mapped);
    data = base_ + exported.offset;
    bytes = exported.bytes;
  }
  ~Mapped() override {
    try {
      const Aside aside(*context_);
      complain(cudaIpcCloseMemHandle(base_), context_->ordinal(), "unmapping another process's memory");
    } catch (const std::exception&) {
      complain(cudaErrorDevicesUnavailable, context_->ordinal(), "unmapping another process's memory");
    }
  }
  // The record's word is not enough: the mapping must be as long as it says.
  void checkLength() const {
    const Aside aside(*context_);
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
class OverFabric : public engine::DeviceMemory {
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

// Empty for memory that only the fabric can hand out, or nothing.
Bytes ipcHandleOf(const DeviceBytes& block, const Allocation& all) {
  if (block.asVirtual() != nullptr) return {};
  cudaIpcMemHandle_t handle{};
  check(cudaIpcGetMemHandle(&handle, all.begin), block.context().ordinal(), "exporting {} bytes", block.bytes());
  const auto bytes = std::as_bytes(std::span(&handle, 1));
  return {bytes.begin(), bytes.end()};
}

Bytes fabricHandleOf(const DeviceBytes& block) {
  if (block.asVirtual() == nullptr || !block.asVirtual()->fabric()) return {};
  return {block.asVirtual()->fabric()->begin(), block.asVirtual()->fabric()->end()};
}

}  // namespace

Bytes exportBlock(const std::shared_ptr<const DeviceBytes>& block, const Uuid& uuid) {
  const Aside aside(block->context());
  const bool isWhole = block->asVirtual() != nullptr;
  const Allocation all =
      isWhole ? Allocation{block->data(), block->bytes()} : allocationAround(block->context(), block->data());
  return Writer()
      .value(kMemoryMagic)
      .value(processNumber())
      .value(static_cast<int32_t>(::getpid()))
      .value(Tickets::ofProcess().leave(block))
      .block(std::as_bytes(std::span(uuid)))
      .value(static_cast<uint64_t>(block->bytes()))
      .value(static_cast<uint64_t>(block->data() - all.begin))
      .block(ipcHandleOf(*block, all))
      .block(fabricHandleOf(*block))
      .take();
}

namespace {

template <class Target>
void fill(Target& target, std::span<const std::byte> block, const char* what) {
  if (block.size() != sizeof target)
    throw Error(ErrorCode::kRemote, fmt::format("a record of a GPU's memory has {} bytes for its {}, not {}",
                                                block.size(), what, sizeof target));
  std::memcpy(&target, block.data(), sizeof target);
}

template <class Target>
void fill(std::optional<Target>& target, std::span<const std::byte> block, const char* what) {
  if (!block.empty()) fill(target.emplace(), block, what);
}

}  // namespace

Exported Exported::read(std::span<const std::byte> bytes) {
  Reader in(bytes);
  if (in.value<uint32_t>() != kMemoryMagic)
    throw Error(ErrorCode::kRemote,
                "a peer sent something else than a record of a GPU's memory: do all ranks run the same version?");
  Exported exported;
  exported.process = in.value<uint64_t>();
  exported.pid = in.value<int32_t>();
  exported.ticket = in.value<uint64_t>();
  fill(exported.uuid, in.block(), "GPU");
  exported.bytes = in.value<uint64_t>();
  exported.offset = in.value<uint64_t>();
  fill(exported.handle, in.block(), "handle");
  fill(exported.fabric, in.block(), "handle of the fabric");
  if (!in.empty()) throw Error(ErrorCode::kRemote, "a record of a GPU's memory goes on behind its end");
  return exported;
}

bool Exported::isOfThisProcess() const noexcept { return process == processNumber() && pid == ::getpid(); }

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

std::unique_ptr<engine::DeviceMemory> mapExported(SharedContext context, const Exported& exported) {
  if (exported.fabric) return std::make_unique<OverFabric>(context, exported);
  if (!exported.handle)
    throw Error(ErrorCode::kCuda, fmt::format("GPU {}: {} bytes of process {} are for that process alone",
                                              context->ordinal(), exported.bytes, exported.pid));
  auto mapped = std::make_unique<Mapped>(std::move(context), exported);
  mapped->checkLength();
  return mapped;
}

}  // namespace tutti::cuda

// Memory of a GPU in the hands of another rank: by CUDA IPC, or over the fabric between GPUs, when it is another
// process, by a ticket when it is not.
#pragma once
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/virtual.h"

namespace tutti::cuda {

using engine::Uuid;

// What importMemory() needs, in this process or another. `uuid` is that of the block's GPU.
Bytes exportBlock(const std::shared_ptr<const DeviceBytes>& block, const Uuid& uuid);

// What an exported record says. Throws Error(kRemote) when it is none: it came from outside.
struct Exported {
  static Exported read(std::span<const std::byte> bytes);
  bool isOfThisProcess() const noexcept;

  uint64_t process = 0;  // a number drawn by chance, as process ids may be the same in two containers
  int32_t pid = 0;
  uint64_t ticket = 0;
  Uuid uuid{};
  uint64_t bytes = 0;
  uint64_t offset = 0;  // of the memory in the allocation that the handle stands for
  // How another process gets it: one of them, or none for what stays within the process.
  std::optional<cudaIpcMemHandle_t> handle;
  std::optional<FabricHandle> fabric;
};

// The block that a record of this process means. Throws Error(kRemote) when it has been freed, or never was.
std::shared_ptr<const DeviceBytes> findBlock(const Exported& exported);
// Maps memory of another process.
std::unique_ptr<engine::DeviceMemory> mapExported(SharedContext context, const Exported& exported);

}  // namespace tutti::cuda

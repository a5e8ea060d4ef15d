// Memory of a GPU in the hands of another rank: by CUDA IPC, or over the fabric between GPUs, when it is another
// process, by a ticket when it is not.
#pragma once
#include <memory>
#include <span>

#include "base/bytes.h"
#include "device/memory_record.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/virtual.h"

namespace tutti::cuda {

using device::Uuid;

// What importMemory() needs, in this process or another. `uuid` is that of the block's GPU.
Bytes exportBlock(const std::shared_ptr<const DeviceBytes>& block, const Uuid& uuid);

using Exported = device::MemoryRecord;

// The block that a record from a rank of this process means. Throws Error(kRemote) when it has been freed, or never
// was.
std::shared_ptr<const DeviceBytes> findBlock(const Exported& exported);
// Maps memory of another process.
std::unique_ptr<device::DeviceMemory> mapExported(SharedContext context, const Exported& exported);

}  // namespace tutti::cuda

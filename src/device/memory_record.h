// What ranks tell each other of a GPU's memory: records of bytes, read before anything is done with what they say.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "device/device.h"

namespace tutti::device {

// What the system knows memory by: CUDA's handle for other processes, or for the fabric between hosts.
using MemoryHandle = std::array<std::byte, 64>;

// A block, as Device::exportMemory() tells of it.
struct MemoryRecord {
  int32_t pid = 0;      // for texts only
  uint64_t ticket = 0;  // in that process
  Uuid uuid{};          // of the block's GPU
  uint64_t bytes = 0;
  uint64_t offset = 0;  // of the memory in the allocation that the handle stands for
  // How another process gets it: one of them, or none for what stays within the process.
  std::optional<MemoryHandle> handle, fabric;

  // Throws Error(kRemote) when it is none: it came from outside.
  static MemoryRecord read(std::span<const std::byte> bytes);
};
Bytes encode(const MemoryRecord& record);

// A user's buffer within an allocation, as Device::offerBuffer() tells of it.
struct BufferRecord {
  uint64_t wholeBytes = 0, offset = 0, bytes = 0;
  std::optional<MemoryHandle> fabric;

  // Throws Error(kRemote) when it is none, or when the buffer does not lie within the allocation.
  static BufferRecord read(std::span<const std::byte> bytes);
};
Bytes encode(const BufferRecord& record);

}  // namespace tutti::device

// A GPU as the runtime sees it: memory that other ranks can map, launches of the collective kernel, streams that wait
// by themselves, and the blocks that communicators share. A port: a build with CUDA implements it in kernels/cuda;
// without, no device can be opened.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "device/block_budget.h"
#include "device/launches.h"
#include "device/memory.h"
#include "device/stream_words.h"

namespace tutti::device {

using Uuid = std::array<uint8_t, 16>;

struct DeviceTraits {
  std::string name;          // "NVIDIA H200"
  Uuid uuid{};               // the same in every process; tells one GPU from another
  std::string busId;         // its place on the PCI bus, "0000:3b:00.0"; "": not known
  int major = 0, minor = 0;  // compute capability
  uint32_t multiprocessors = 0;
  uint32_t threadsPerBlock = 0;  // of the collective kernel
  uint32_t residentBlocks = 0;   // blocks of the collective kernel that the whole GPU holds at once
};

class Device : public MemoryPort, public LaunchPort, public StreamWordPort, public BlockBudget {
 public:
  virtual int ordinal() const noexcept = 0;
  virtual const DeviceTraits& traits() const noexcept = 0;
};

// How many devices this process can use; 0 and `why` when there is none, or no CUDA in this build.
int deviceCount(std::string& why) noexcept;
// The device with that number; one object serves all who ask. Throws Error(kInvalidArgument) when there is none, with
// the reason.
std::shared_ptr<Device> openDevice(int ordinal);
// The calling thread's current device; -1 when there is none.
int currentDevice() noexcept;

}  // namespace tutti::device

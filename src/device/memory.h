// Memory of a GPU as the runtime sees it: made, mapped by other ranks, tested. For set-up, not for the path of a call.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "link/gpu_slots.h"
#include "process/fd.h"

namespace tutti::device {

// What joins two GPUs. Within one, and over NVLink, 128 bytes that a warp stores arrive as a whole; over PCIe not.
enum class GpuLinkType : uint8_t { kUnknown, kPcie, kNvlink, kSameGpu };

// Memory that is freed, or unmapped, with its last owner.
struct DeviceMemory {
  virtual ~DeviceMemory() = default;
  std::byte* data = nullptr;  // of the GPU; pinned host memory has the same address for both
  size_t bytes = 0;
};

// A user's buffer for another process to map: bytes for it, and, unless these are enough, a descriptor that it needs.
struct BufferOffer {
  Bytes record;
  UniqueFd descriptor;
};

// All of them throw Error(kCuda), with CUDA's text, what was asked for and on which device. Any thread; the calling
// thread's current device stays as it was. None waits for the work of any stream but where it says so.
class MemoryPort {
 public:
  virtual ~MemoryPort() = default;

  virtual std::unique_ptr<DeviceMemory> allocate(size_t bytes) = 0;  // of the GPU, zeroed
  // As allocate(), for callers' buffers: where the GPU can, of the driver's virtual memory management, with which every
  // GPU of this process that reaches this one may use it.
  virtual std::unique_ptr<DeviceMemory> allocateForUsers(size_t bytes) = 0;
  // As allocate(), for what other ranks map: also those of other hosts, where a fabric joins their GPUs to this one.
  virtual std::unique_ptr<DeviceMemory> allocateForPeers(size_t bytes) = 0;
  // Memory of the GPU that a network's devices read and write by themselves, for as long as this port; and why there is
  // none (empty: there may be).
  virtual std::unique_ptr<link::GpuSlots> allocateForNetwork(size_t bytes) = 0;
  virtual std::string lackForNetwork() const = 0;
  virtual std::unique_ptr<DeviceMemory> allocatePinned(size_t bytes) = 0;  // of the host, zeroed, mapped for the GPU
  // Makes host memory that exists already, such as a shared mapping, one that the GPU can reach at the same address.
  virtual std::unique_ptr<DeviceMemory> pin(std::byte* data, size_t bytes) = 0;
  // What another rank needs to use memory that allocate() or allocateForPeers() made here, and how it gets it. `here`:
  // that rank is of this process, which the caller knows from elsewhere. No record of another process leads to memory
  // that is handed around in this one.
  virtual Bytes exportMemory(const DeviceMemory& memory) const = 0;
  virtual std::unique_ptr<DeviceMemory> importMemory(std::span<const std::byte> exported, bool here) = 0;
  // Whether such a record may be imported on another host.
  virtual bool goesToOtherHosts(std::span<const std::byte> exported) const = 0;
  // The same for memory of the user's, of which only such of the driver's virtual memory management, in one piece, can
  // be mapped elsewhere: it stays there, whatever its owner does with it, until it is unmapped. Throws for other
  // memory. Another host takes only an offer without a descriptor.
  virtual BufferOffer offerBuffer(const std::byte* buffer, size_t bytes) = 0;
  virtual std::unique_ptr<DeviceMemory> acceptBuffer(std::span<const std::byte> record, const UniqueFd& descriptor) = 0;
  // Whether kernels of another GPU of this process may use this memory; reach() that GPU first.
  virtual bool opensTo(const std::byte* buffer, int peerOrdinal) = 0;
  // What joins this GPU to those that have the memory of such records of exportMemory(), as far as this host knows; and
  // why not, where it does not know. Throws Error(kRemote) for what is no such record.
  virtual std::vector<GpuLinkType> jointsTo(std::span<const Bytes> exported, std::string& why) const = 0;
  // Lets kernels of this device use memory of another device of this process. False: it cannot be had (`why`).
  virtual bool reach(int peerOrdinal, std::string& why) = 0;
  // Copies to or from the GPU beside all streams, also while one of them captures a graph, and waits for that copy.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;

  // The self-test of a mapping. Each waits for its own kernel, which never waits for anything.
  virtual void writePattern(std::byte* to, size_t bytes, uint64_t seed) = 0;
  virtual bool checkPattern(const std::byte* from, size_t bytes, uint64_t seed) = 0;
};

}  // namespace tutti::device

// A GPU as the runtime sees it: memory that other ranks can map, launches of the collective kernel, and streams that
// wait by themselves. A port: a build with CUDA implements it in kernels/cuda; without, no device can be opened.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "kernels/cuda/fold.h"
#include "kernels/cuda/program.h"

struct CUstream_st;

namespace tutti::engine {

using DeviceStream = CUstream_st*;  // the CUDA runtime's; null is its legacy default stream

using Uuid = std::array<uint8_t, 16>;

struct DeviceTraits {
  std::string name;          // "NVIDIA H200"
  Uuid uuid{};               // the same in every process; tells one GPU from another
  int major = 0, minor = 0;  // compute capability
  uint32_t multiprocessors = 0;
  uint32_t threadsPerBlock = 0;  // of the collective kernel
  uint32_t residentBlocks = 0;   // blocks of the collective kernel that the whole GPU holds at once
};

// What joins two GPUs. Within one, and over NVLink, 128 bytes that a warp stores arrive as a whole; over PCIe not.
enum class Joint : uint8_t { kUnknown, kPcie, kNvlink, kSameGpu };

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

// The order between the launches of one communicator, whatever streams they are on: a communicator's operations run one
// after the other. Inside a CUDA graph the order is that of the capture.
class LaunchOrder {
 public:
  virtual ~LaunchOrder() = default;
};

// What a stream does to a word of memory by itself, with no kernel: it waits until the word has the value, or writes
// it.
struct WordOp {
  enum class Kind : uint8_t { kWait, kWrite } kind = Kind::kWait;
  uint64_t* word = nullptr;  // of any GPU's memory that this one reaches, or pinned
  uint64_t value = 0;
};

// A stream of one communicator's own, beside those of the user: what waits in it holds no multiprocessor. Used within
// Device::beside() alone. Everything runs in the order in which it was queued; throws Error(kCuda).
class SideQueue {
 public:
  virtual ~SideQueue() = default;
  // Whoever waits for what one of them writes sees all that was queued before it.
  virtual void words(std::span<const WordOp> ops) = 0;
  virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;  // of GPUs, or pinned
  virtual void fold(const cuda::Fold& fold) = 0;
  virtual void requireAlive() = 0;  // throws when the GPU has failed: nothing goes on there
};

class Device {
 public:
  virtual ~Device() = default;
  virtual int ordinal() const noexcept = 0;
  virtual const DeviceTraits& traits() const noexcept = 0;

  // All of these throw Error(kCuda), with CUDA's text, what was asked for and on which device. Any thread; the calling
  // thread's current device stays as it was. None waits for the work of any stream but where it says so.

  // --- memory: for set-up, not for the path of a call ---
  virtual std::unique_ptr<DeviceMemory> allocate(size_t bytes) = 0;  // of the GPU, zeroed
  // As allocate(), for callers' buffers: where the GPU can, of the driver's virtual memory management, with which every
  // GPU of this process that reaches this one may use it.
  virtual std::unique_ptr<DeviceMemory> allocateForUsers(size_t bytes) = 0;
  // As allocate(), for what other ranks map: also those of other hosts, where a fabric joins their GPUs to this one.
  virtual std::unique_ptr<DeviceMemory> allocateForPeers(size_t bytes) = 0;
  virtual std::unique_ptr<DeviceMemory> allocatePinned(size_t bytes) = 0;  // of the host, zeroed, mapped for the GPU
  // Makes host memory that exists already, such as a shared mapping, one that the GPU can reach at the same address.
  virtual std::unique_ptr<DeviceMemory> pin(std::byte* data, size_t bytes) = 0;
  // What another process needs to map memory that allocate() or allocateForPeers() made here, and the mapping there.
  virtual Bytes exportMemory(const DeviceMemory& memory) const = 0;
  virtual std::unique_ptr<DeviceMemory> importMemory(std::span<const std::byte> exported) = 0;
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
  virtual std::vector<Joint> jointsTo(std::span<const Bytes> exported, std::string& why) const = 0;
  // Lets kernels of this device use memory of another device of this process. False: it cannot be had (`why`).
  virtual bool reach(int peerOrdinal, std::string& why) = 0;
  // Copies to or from the GPU beside all streams, also while one of them captures a graph, and waits for that copy.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;

  // --- set-up: the self-test of a mapping. Each waits for its own kernel, which never waits for anything. ---
  virtual void writePattern(std::byte* to, size_t bytes, uint64_t seed) = 0;
  virtual bool checkPattern(const std::byte* from, size_t bytes, uint64_t seed) = 0;

  // --- co-residency: blocks that wait for each other must all be on the GPU, whatever else runs there ---
  // Blocks of the collective kernel that can still be promised to communicators of this process.
  virtual uint32_t freeBlocks() const noexcept = 0;
  // Promises that many to the caller, until it gives them back. Throws Error(kInvalidUsage) when they are not there.
  virtual void reserve(uint32_t blocks) = 0;
  virtual void giveBack(uint32_t blocks) noexcept = 0;

  // --- operations ---
  virtual std::unique_ptr<LaunchOrder> newOrder() = 0;
  // Queues one launch of `blocks` blocks as if on each of `streams` at once, behind the earlier launches of every one
  // of `orders`. Returns before it runs. Nothing is allocated; legal during a capture.
  virtual void launch(const cuda::Launch& launch, uint32_t blocks, std::span<const DeviceStream> streams,
                      std::span<LaunchOrder* const> orders) = 0;
  // Whether streams of this GPU can wait for words in memory. False: the driver or the GPU can not (`why`).
  virtual bool streamsWait(std::string& why) noexcept = 0;
  virtual std::unique_ptr<SideQueue> newSideQueue() = 0;
  // What `queueAll` puts into `queues` runs as one launch would (see there) whose parts, one a queue, run side by side.
  virtual void beside(std::span<SideQueue* const> queues, std::span<const DeviceStream> streams,
                      std::span<LaunchOrder* const> orders, const std::function<void()>& queueAll) = 0;
  // Words that streams wait for, looked at and changed beside all streams.
  virtual uint64_t readWord(const uint64_t* word) = 0;
  virtual void writeWords(std::span<const WordOp> ops) = 0;
  // Whether what is queued on the stream now goes into a graph.
  virtual bool captures(DeviceStream stream) = 0;
  // Waits until all that was queued behind `order` has ended; finished() only looks.
  virtual void drain(LaunchOrder& order) = 0;
  virtual bool finished(LaunchOrder& order) noexcept = 0;  // true, too, when the GPU has failed
};

// How many devices this process can use; 0 and `why` when there is none, or no CUDA in this build.
int deviceCount(std::string& why) noexcept;
// The device with that number; one object serves all who ask. Throws Error(kInvalidArgument) when there is none, with
// the reason.
std::shared_ptr<Device> openDevice(int ordinal);
// The calling thread's current device; -1 when there is none.
int currentDevice() noexcept;

}  // namespace tutti::engine

// What a communicator has on its GPU: links, programs, counters, and the words by which kernels and host tell each
// other of progress and of trouble.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/call.h"
#include "comm/config.h"
#include "comm/device_bridges.h"
#include "comm/device_peers.h"
#include "comm/device_programs.h"
#include "comm/device_record.h"
#include "comm/device_shape.h"
#include "comm/device_streamed.h"
#include "comm/device_windows.h"
#include "control/plane.h"
#include "device/device.h"

namespace tutti::comm {

// Whom to tell, from a thread of its own, what a kernel met, which link through the host was cut off, what a peer has
// said of its registered buffers that can not be, and, every millisecond, which call waits for a rank.
struct DeviceTroubles {
  std::function<void(const device::Report& report)> kernel;
  std::function<void(int peer, const std::string& text)> cutOff;
  std::function<void(int peer, const std::string& what)> lie;
  std::function<void(const std::optional<StandingCall>& now, bool overNetwork)> standing;
};

class DeviceSide {
 public:
  // Collective over the plane. Blocks, at most for config.joinTimeout; throws Error.
  DeviceSide(control::Plane& plane, Links& links, std::span<const topology::Card> cards, std::vector<int> groupOf,
             const Config& config, Recorder& recorder, DeviceTroubles onTrouble);
  ~DeviceSide();
  // Ends every wait of a kernel that is still running, and waits for it to leave the GPU. Nothing is launched
  // afterwards; the destructor does it too.
  void end() noexcept;
  DeviceSide(const DeviceSide&) = delete;
  DeviceSide& operator=(const DeviceSide&) = delete;

  device::Device& device() noexcept { return *device_; }
  device::LaunchOrder& order() noexcept { return *order_; }
  const DeviceShape& shape() const noexcept { return shape_; }
  size_t memoryBytes() const noexcept { return peers_.bytes() + programs_.bytes() + state_->bytes + windows_.bytes(); }
  // The buffers that the user registers. The calling thread is that of workFor().
  DeviceWindows& windows() noexcept { return windows_; }

  // What would run a collective, in words: "ring, ll128, 4 channels".
  std::string foresee(const Call& call) const;
  const std::vector<int>& unreached() const noexcept { return peers_.unreached(); }

  // Whether any peer's memory is used directly.
  bool reachesSome() const noexcept { return peers_.unreached().size() + 1 < static_cast<size_t>(shape_.size); }

  // Before the calls of a group are prepared. All of them are launched before the next group, or never.
  void beginGroup();
  // What runs the call, for as long as this lives; and the call as a kernel sees it, all but its place in the launch.
  // `stays`: a graph keeps it. Both throw Error. One thread at a time.
  const DeviceProgram& programFor(const Call& call) { return programs_.find(call, streams(call)); }
  device::Work workFor(const Call& call, const DeviceProgram& program, bool stays);
  // Whether the call waits in a stream and not in a kernel, and then what is queued. As workFor().
  bool streams(const Call& call) const noexcept;
  DeviceStreamed& streamed() noexcept { return *streamed_; }
  engine::StreamedLane laneFor(const Call& call, const DeviceProgram& program) {
    return streamed_->laneFor(call, program, nextNumber(call), barrierByte_);
  }
  // Works that do not fit into a launch's arguments, where the GPU can read them.
  const device::Work* placeWorks(std::span<const device::Work> works, bool stays);
  // It is in a launch that has been queued, as `work`.
  void launched(const Call& call, const DeviceProgram& program, const device::Work& work);
  void launchedInStream(const Call& call, const DeviceProgram& program);
  // The number that the next call of its line gets: as on the host, the same at both ends of a line.
  uint64_t nextNumber(const Call& call) const noexcept;
  // Brings the recorder's lines of what runs up to date. Any thread.
  void note();

  bool idle() const noexcept { return device_->finished(*order_); }
  void drain() { device_->drain(*order_); }
  uint64_t calls() const noexcept { return calls_.load(std::memory_order_relaxed); }
  schedule::Algorithm lastAlgorithm() const noexcept { return lastAlgorithm_.load(std::memory_order_relaxed); }
  // Slots that this rank's peers read, or that it wrote, in place; by operations that have ended. Asks the GPU.
  uint64_t directSlots() const;

 private:
  void writeState();
  std::byte* placeArguments(const void* data, size_t bytes, bool stays);
  const size_t* placeTable(const std::vector<size_t>& table, bool stays);
  void placeTables(const Call& call, kernels::Layout& layout, bool stays);
  void openBuffers(const Call& call, const DeviceProgram& program, device::Work& work, bool stays);
  DeviceShape bridgedShape() const;
  device::End endOf(bool sends, Protocol protocol, uint32_t channel, int peer) const;
  void attend();
  void drive(std::unique_lock<std::mutex>& lock);
  // What onTrouble_ is to hear of a look.
  struct News {
    std::optional<device::Report> kernel;
    std::optional<DeviceBridges::Failure> cutOff;
    std::optional<StandingCall> standing;
    bool looked = false;  // whether `standing` says anything
  };
  News tryToLook() noexcept;
  News look();
  std::optional<device::Report> lookAtKernels();
  std::optional<device::Report> lookAtStream(bool stopping);
  void tell(const News& news) noexcept;
  std::unique_ptr<DeviceStreamed> makeStreamed(std::span<const topology::Card> cards);
  device::Report& report() const noexcept { return *reinterpret_cast<device::Report*>(words_->data); }
  uint32_t& abortWord() const noexcept;

  control::Plane& plane_;
  const Config& config_;
  DeviceTroubles onTrouble_;
  DeviceShape shape_;  // first: it is what tells ranks that do not go together
  std::shared_ptr<device::Device> device_;
  struct Promise {  // of blocks on the GPU
    device::Device& device;
    uint32_t blocks;
    Promise(device::Device& of, uint32_t count) : device(of), blocks(count) { device.reserve(blocks); }
    ~Promise() { device.giveBack(blocks); }
  } promise_;
  DevicePeers peers_;
  DeviceWindows windows_;
  DeviceBridges bridges_;
  DevicePrograms programs_;
  std::unique_ptr<device::DeviceMemory> state_;      // of the GPU: ends, counters
  std::unique_ptr<device::DeviceMemory> words_;      // of the host: report, abort, progress
  std::unique_ptr<device::DeviceMemory> arguments_;  // of the host: tables of v-variants, works of large groups
  size_t argumentsUsed_ = 0, argumentsKept_ = 0;     // from the front, in turn; from the back, by graphs
  bool groupHasArguments_ = false;
  std::byte* barrierByte_ = nullptr;  // of the GPU: what a barrier reduces
  std::unique_ptr<device::LaunchOrder> order_;
  std::unique_ptr<DeviceStreamed> streamed_;  // null: kernels run everything
  device::Seat seat_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<schedule::Algorithm> lastAlgorithm_{schedule::Algorithm::kRing};  // of a collective
  uint64_t collectives_ = 0;                                                    // so far
  std::vector<uint64_t> sent_, received_;                                       // messages to and from each rank

  bool toldOfCut_ = false;                 // the attendant's alone, as is the next
  std::optional<DeviceWindows::Lie> lie_;  // until it has been told
  std::mutex mutex_;                       // guards what follows
  std::condition_variable changed_;
  DeviceRecord record_;
  bool ending_ = false, told_ = false;
  std::thread attendant_;
};

}  // namespace tutti::comm

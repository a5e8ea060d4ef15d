// Runs calls on a GPU. What a communicator has there: links, programs, counters, and the words by which kernels and
// host tell each other of progress and of trouble.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "device/device.h"
#include "gpu/faults.h"
#include "gpu/host_staged_links.h"
#include "gpu/layout.h"
#include "gpu/operation.h"
#include "gpu/peers.h"
#include "gpu/programs.h"
#include "gpu/record.h"
#include "gpu/remote_buffers.h"
#include "gpu/streamed.h"
#include "site/site.h"
#include "team/call.h"
#include "team/executor.h"
#include "team/links.h"

namespace tutti::gpu {

class GpuExecutor final : public comm::Executor {
 public:
  // Collective over the team. Blocks, at most for config.joinTimeout; throws Error.
  GpuExecutor(comm::Team& team, const comm::GroupLauncher& launcher, GpuFaults onFault);
  ~GpuExecutor() override;

  // --- the port ---
  void run(const comm::Call& call) override;
  void queue(comm::PendingCall call) override;
  std::shared_ptr<comm::Operation> newOperation() override;
  void addBuffer(const void* handle, const comm::Range& buffer) override { windows_.add(handle, buffer); }
  void endBuffer(const void* handle) override { windows_.remove(handle); }
  bool idle() const noexcept override { return device_->finished(*order_); }
  // Ends every wait of a kernel that is still running, and waits for it to leave the GPU. The destructor does it too.
  void end() noexcept override;
  void note() override;
  comm::Stats stats() const override;
  std::string foresee(const comm::Call& call) const override;
  comm::Explanation explain(const comm::Call& call) const override;
  comm::Rows describe() const override;

  // --- of those who launch: one thread at a time ---
  device::Device& device() noexcept { return *device_; }
  device::LaunchOrder& order() noexcept { return *order_; }
  const GpuLayout& shape() const noexcept { return shape_; }
  // Before the calls of a group are prepared. All of them are launched before the next group, or never.
  void beginGroup();
  // What runs the call, for as long as this lives; and the call as a kernel sees it, all but its place in the launch.
  // `stays`: a graph keeps it. Both throw Error. One thread at a time.
  const DeviceProgram& programFor(const comm::Call& call) { return programs_.find(call, streams(call)); }
  device::KernelWork workFor(const comm::Call& call, const DeviceProgram& program, bool stays);
  // Whether the call waits in a stream and not in a kernel, and then what is queued. As workFor().
  bool streams(const comm::Call& call) const noexcept;
  DeviceStreamed& streamed() noexcept { return *streamed_; }
  engine::StreamedLane laneFor(const comm::Call& call, const DeviceProgram& program) {
    return streamed_->laneFor(call, program, nextNumber(call), barrierByte_);
  }
  // Works that do not fit into a launch's arguments, where the GPU can read them.
  const device::KernelWork* placeWorks(std::span<const device::KernelWork> works, bool stays);
  // It is in a launch that has been queued, as `work`.
  void launched(const comm::Call& call, const DeviceProgram& program, const device::KernelWork& work);
  void launchedInStream(const comm::Call& call, const DeviceProgram& program);
  // While calls are queued in streams, which takes as long as they wait where they are long: they have not ended,
  // whatever the GPU says.
  void beginStreaming();
  void endStreaming() noexcept;
  // The number that the next call of its line gets: as on the host, the same at both ends of a line.
  uint64_t nextNumber(const comm::Call& call) const noexcept;

 private:
  void drain() { device_->drain(*order_); }
  std::vector<comm::Explanation::Way> ways() const;
  // Whether any peer's memory is used directly.
  bool reachesSome() const noexcept { return peers_.unreached().size() + 1 < static_cast<size_t>(shape_.size); }
  size_t memoryBytes() const noexcept { return peers_.bytes() + programs_.bytes() + state_->bytes + windows_.bytes(); }
  // Slots that this rank's peers read, or that it wrote, in place; by operations that have ended. Asks the GPU.
  uint64_t directSlots() const;
  void writeState();
  std::byte* placeArguments(const void* data, size_t bytes, bool stays);
  const size_t* placeTable(const std::vector<size_t>& table, bool stays);
  void placeTables(const comm::Call& call, kernels::Layout& layout, bool stays);
  void openBuffers(const comm::Call& call, const DeviceProgram& program, device::KernelWork& work, bool stays);
  GpuLayout bridgedLayout() const;
  device::End endOf(bool sends, Protocol protocol, uint32_t channel, int peer) const;
  void attend();
  void drive(std::unique_lock<std::mutex>& lock);
  // What onFault_ is to hear of a look.
  struct News {
    std::optional<device::Report> kernel;
    std::optional<HostStagedLinks::Failure> cutOff;
    std::optional<StandingCall> standing;
    bool looked = false;  // whether `standing` says anything
  };
  News tryToLook() noexcept;
  News look();
  void lookAtOperations() noexcept;
  void closeOperations() noexcept;
  std::optional<device::Report> lookAtKernels();
  std::optional<device::Report> lookAtStream(bool stopping);
  void tell(const News& news) noexcept;
  std::unique_ptr<DeviceStreamed> makeStreamed();
  device::Report& report() const noexcept { return *reinterpret_cast<device::Report*>(words_->data); }
  uint32_t& abortWord() const noexcept;

  const comm::Config& config_;
  GpuFaults onFault_;
  comm::Links links_;  // through the host
  GpuLayout shape_;    // first: it is what tells ranks that do not go together
  std::shared_ptr<device::Device> device_;
  struct Promise {  // of blocks on the GPU
    device::Device& device;
    uint32_t blocks;
    Promise(device::Device& of, uint32_t count) : device(of), blocks(count) { device.reserve(blocks); }
    ~Promise() { device.giveBack(blocks); }
  } promise_;
  DevicePeers peers_;
  site::Site site_;
  std::vector<int> groupOf_;  // as schedule::Shape has it
  RemoteBuffers windows_;
  HostStagedLinks bridges_;
  DevicePrograms programs_;
  std::unique_ptr<device::DeviceMemory> state_;      // of the GPU: ends, counters
  std::unique_ptr<device::DeviceMemory> words_;      // of the host: report, abort, progress
  std::unique_ptr<device::DeviceMemory> arguments_;  // of the host: tables of v-variants, works of large groups
  size_t argumentsUsed_ = 0, argumentsKept_ = 0;     // from the front, in turn; from the back, by graphs
  bool groupHasArguments_ = false;
  std::byte* barrierByte_ = nullptr;  // of the GPU: what a barrier reduces
  std::unique_ptr<device::LaunchOrder> order_;
  std::unique_ptr<DeviceStreamed> streamed_;  // null: kernels run everything
  device::DeviceComm seat_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<schedule::Algorithm> lastAlgorithm_{schedule::Algorithm::kRing};  // of a collective
  uint64_t collectives_ = 0;                                                    // so far
  std::vector<uint64_t> sent_, received_;                                       // messages to and from each rank

  bool toldOfCut_ = false;                 // the attendant's alone, as is the next
  std::optional<RemoteBuffers::Lie> lie_;  // until it has been told
  std::mutex mutex_;                       // guards what follows; comes before those of streams and buffers
  std::condition_variable changed_;
  DeviceRecord record_;
  std::vector<std::weak_ptr<LaunchedOperation>> operations_;  // of requests that live
  bool ending_ = false, told_ = false;
  bool streaming_ = false;
  bool letGo_ = false;  // the stream has gone on without what it waited for
  std::thread attendant_;
};

}  // namespace tutti::gpu

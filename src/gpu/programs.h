// The programs of one communicator on its GPU: schedules chosen, built, and uploaded once.
#pragma once
#include <memory>
#include <tuple>
#include <vector>

#include "device/device.h"
#include "gpu/layout.h"
#include "plan/device.h"
#include "schedule/algorithm.h"
#include "team/call.h"
#include "team/config.h"
#include "team/plan_cache.h"

namespace tutti::gpu {

struct DeviceProgram {
  schedule::Schedule schedule;
  device::Program program;
  Protocol protocol = Protocol::kSimple;
  uint32_t channels = 1;
  uint32_t chunkBytes = 0;  // of one segment in a slot
};

// The machine as the plan sees it; `streamed`: for operations that wait in streams.
plan::DeviceMachine deviceMachine(const GpuLayout& shape, bool streamed);
// Bytes of one segment that a slot carries under a schedule. Throws Error(kInvalidUsage) where that is less than an
// element.
uint32_t deviceChunkBytes(const schedule::Schedule& schedule, Protocol protocol, const GpuLayout& shape, bool streamed);

// Throws Error(kInvalidUsage) where so many GPUs have no algorithm that adds in the order of the ranks, which was asked
// for: what was chosen then is none.
void requireRankOrder(const schedule::Request& request, schedule::Algorithm chosen, const plan::DeviceMachine& machine);

class DevicePrograms {
 public:
  // Allocates what all programs will ever need: later calls allocate nothing on the GPU. `groupOf` and `within` as
  // schedule::Shape has them.
  DevicePrograms(int rank, const comm::Config& config, const GpuLayout& shape, std::vector<int> groupOf,
                 std::vector<int> within, device::Device& device);

  // The program of a call, for a kernel or for a stream, which reads the schedule on the host. Throws Error. One thread
  // at a time.
  const DeviceProgram& find(const comm::Call& call, bool streamed = false);
  // What find() would choose for a collective. Any thread.
  plan::DeviceChoice foresee(const comm::Call& call, bool streamed) const {
    return streamed ? chooseStreamed(call) : choose(call);
  }
  // The same with all that is weighed for a kernel. Any thread.
  plan::DevicePlan weigh(const comm::Call& call) const;
  // What was not to be chosen for it, and why. Any thread.
  std::vector<std::string> refusals(const comm::Call& call) const {
    return plan::refusalsOf(requestOf(call), algorithmsOf(call));
  }
  size_t bytes() const noexcept { return arena_->bytes + scratch_->bytes; }

 private:
  using Key = std::tuple<Collective, schedule::Algorithm, int, Protocol, int>;  // …, root or ~peer, …, channels or 0

  schedule::Allowed algorithmsOf(const comm::Call& call) const;
  plan::AllowedProtocols protocolsOf(Collective collective) const;
  plan::DeviceChoice choose(const comm::Call& call) const;
  plan::DeviceChoice chooseMessage(const comm::Call& call) const;
  schedule::Request requestOf(const comm::Call& call) const noexcept;
  plan::DeviceChoice chooseStreamed(const comm::Call& call) const;
  schedule::Schedule build(const comm::Call& call, schedule::Algorithm algorithm, int depth) const;
  std::unique_ptr<DeviceProgram> make(const comm::Call& call, const plan::DeviceChoice& choice);
  std::unique_ptr<DeviceProgram> makeStreamed(const comm::Call& call, const plan::DeviceChoice& choice);
  device::Program upload(const schedule::Schedule& schedule, uint32_t scratchBytes);
  template <class T>
  const T* place(const std::vector<T>& list);
  uint32_t mostScratches() const;

  int rank_;
  const comm::Config& config_;
  GpuLayout shape_;
  std::vector<int> groupOf_, within_;
  device::Device& device_;
  std::unique_ptr<device::DeviceMemory> arena_, scratch_;
  size_t used_ = 0;  // of the arena
  comm::PlanCache<Key, DeviceProgram> programs_;
};

}  // namespace tutti::gpu

// The programs of one communicator on its GPU: schedules chosen, built, and uploaded once.
#pragma once
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "comm/call.h"
#include "comm/config.h"
#include "comm/device_shape.h"
#include "comm/plan_cache.h"
#include "device/device.h"
#include "plan/device.h"
#include "schedule/algorithm.h"

namespace tutti::comm {

struct DeviceProgram {
  schedule::Schedule schedule;
  device::Program program;
  Protocol protocol = Protocol::kSimple;
  uint32_t channels = 1;
  uint32_t chunkBytes = 0;  // of one segment in a slot
};

// The machine as the plan sees it; `streamed`: for operations that wait in streams.
plan::DeviceMachine deviceMachine(const DeviceShape& shape, bool streamed);
// Bytes of one segment that a slot carries under a schedule. Throws Error(kInvalidUsage) where that is less than an
// element.
uint32_t deviceChunkBytes(const schedule::Schedule& schedule, Protocol protocol, const DeviceShape& shape,
                          bool streamed);

class DevicePrograms {
 public:
  // Allocates what all programs will ever need: later calls allocate nothing on the GPU.
  DevicePrograms(int rank, const Config& config, const DeviceShape& shape, std::vector<int> groupOf,
                 device::Device& device);

  // The program of a call, for a kernel or for a stream, which reads the schedule on the host. Throws Error. One thread
  // at a time.
  const DeviceProgram& find(const Call& call, bool streamed = false);
  // What find() would choose for a collective. Any thread.
  plan::DeviceChoice foresee(const Call& call, bool streamed) const {
    return streamed ? chooseStreamed(call) : choose(call);
  }
  size_t bytes() const noexcept { return arena_->bytes + scratch_->bytes; }

 private:
  using Key = std::tuple<Collective, schedule::Algorithm, int, Protocol, int>;  // …, root or ~peer, …, channels or 0

  std::optional<Protocol> forcedProtocol() const;
  plan::DeviceChoice choose(const Call& call) const;
  plan::DeviceChoice chooseMessage(const Call& call) const;
  plan::DeviceChoice chooseStreamed(const Call& call) const;
  schedule::Schedule build(const Call& call, schedule::Algorithm algorithm) const;
  std::unique_ptr<DeviceProgram> make(const Call& call, const plan::DeviceChoice& choice);
  std::unique_ptr<DeviceProgram> makeStreamed(const Call& call, const plan::DeviceChoice& choice);
  device::Program upload(const schedule::Schedule& schedule, uint32_t scratchBytes);
  template <class T>
  const T* place(const std::vector<T>& list);
  uint32_t mostScratches() const;

  int rank_;
  const Config& config_;
  DeviceShape shape_;
  std::vector<int> groupOf_;
  device::Device& device_;
  std::unique_ptr<device::DeviceMemory> arena_, scratch_;
  size_t used_ = 0;  // of the arena
  PlanCache<Key, DeviceProgram> programs_;
};

}  // namespace tutti::comm

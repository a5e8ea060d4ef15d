// Calls of a group that wait in streams.
#pragma once
#include <vector>

#include "device/device.h"
#include "gpu/executor.h"
#include "team/call.h"

namespace tutti::gpu {

struct StreamedCall {
  GpuExecutor* side = nullptr;
  const comm::Call* call = nullptr;
  device::DeviceStream stream = nullptr;
  int distance = -1;  // of a message from sender to receiver; -1: a collective
  LaunchedOperation* operation = nullptr;
};

// Queues all of them at once; of one communicator, of each link's calls one at most. Throws Error; `begun` is true then
// if something had been queued.
void queueStreamed(device::Device& device, const std::vector<StreamedCall>& calls, bool& begun);

}  // namespace tutti::gpu

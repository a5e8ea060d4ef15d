// Calls on GPUs: put into as few launches as their order allows, and queued on their streams.
#pragma once
#include <memory>
#include <vector>

#include "comm/call.h"
#include "comm/communicator.h"
#include "device/device.h"

namespace tutti::comm {

struct DeviceCall {
  std::shared_ptr<Communicator> communicator;
  Call call;
  device::DeviceStream stream = nullptr;
};

// Queues all of them as one group, and returns before they run. Throws Error; what was queued before stays queued.
void launchCalls(const std::vector<DeviceCall>& calls);

}  // namespace tutti::comm

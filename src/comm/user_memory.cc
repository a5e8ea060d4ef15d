#include "comm/user_memory.h"

#include "device/device.h"

namespace tutti::comm {

std::shared_ptr<void> allocateOnDevice(int device, size_t bytes) {
  const std::shared_ptr<device::DeviceMemory> memory = device::openDevice(device)->allocateForUsers(bytes);
  return {memory, memory->data};
}

}  // namespace tutti::comm

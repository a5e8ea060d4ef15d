#include "device/user_memory.h"

#include "device/device.h"

namespace tutti::device {

std::shared_ptr<void> allocateOnDevice(int device, size_t bytes) {
  const std::shared_ptr<DeviceMemory> memory = openDevice(device)->allocateForUsers(bytes);
  return {memory, memory->data};
}

}  // namespace tutti::device

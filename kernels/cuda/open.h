// The GPUs of this process.
#pragma once
#include <memory>

#include "device/device.h"

namespace tutti::cuda {

// A GPU, opened; see openDevice(). Throws Error(kCuda).
std::shared_ptr<device::Device> makeGpu(int ordinal);

}  // namespace tutti::cuda

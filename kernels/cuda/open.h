// The GPUs of this process.
#pragma once
#include <memory>

#include "engine/device.h"

namespace tutti::cuda {

// A GPU, opened; see openDevice(). Throws Error(kCuda).
std::shared_ptr<engine::Device> makeGpu(int ordinal);

}  // namespace tutti::cuda

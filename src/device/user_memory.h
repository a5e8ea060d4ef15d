// Memory of a GPU that callers ask the library for.
#pragma once
#include <cstddef>
#include <memory>

namespace tutti::device {

// Zeroed; it lives as long as its last owner. Throws Error: kInvalidArgument where there is no such GPU, kCuda.
std::shared_ptr<void> allocateOnDevice(int device, size_t bytes);

}  // namespace tutti::device

// What the emulated devices say of network devices.
#pragma once
#include <cuda.h>

#include <optional>

namespace tutti::emulation {

// Nothing: it is about something else.
std::optional<int> networkAttribute(CUdevice_attribute attribute) noexcept;

}  // namespace tutti::emulation

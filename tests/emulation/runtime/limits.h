// What every emulated device allows: the figures of a GPU of compute capability 9.0.
#pragma once
#include <cstddef>

namespace tutti::emulation {

inline constexpr size_t kDeviceBytes = size_t{16} << 30;
inline constexpr size_t kSharedBytes = 48 * 1024, kSharedBytesOptIn = 227 * 1024;
inline constexpr int kMaxThreads = 1024;
inline constexpr int kMaxThreadsDim[3] = {1024, 1024, 64};
inline constexpr int kMaxGrid[3] = {2147483647, 65535, 65535};

}  // namespace tutti::emulation

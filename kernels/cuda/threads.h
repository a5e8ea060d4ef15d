// How many threads a block of the collective kernel has. For the host too, which launches it and tells of it.
#pragma once
#include <cstdint>

namespace tutti::cuda {

// The emulation runs the threads of a block one after the other: fewer do.
#ifdef TUTTI_EMULATION
inline constexpr uint32_t kThreads = 64;
#else
inline constexpr uint32_t kThreads = 512;
#endif

}  // namespace tutti::cuda

// Copies that go around the caches.
#pragma once
#include <cstddef>

namespace tutti::kernels {

#if defined(__SSE2__)
inline constexpr bool kGoesAround = true;
#else
inline constexpr bool kGoesAround = false;  // both are as ordinary copies then
#endif

// As memcpy, but the destination does not come into this core's caches: its lines are written as a whole, and nobody's
// copy of them has to be fetched first. For what this core will not read soon. Where the processor has no
// such stores, an ordinary copy. Any alignment; any thread.
void copyAround(std::byte* to, const std::byte* from, size_t bytes) noexcept;
// Other threads may see such a copy later than stores that follow it, but not later than those that follow this.
void settle() noexcept;

}  // namespace tutti::kernels

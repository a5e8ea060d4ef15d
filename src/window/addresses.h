// Addresses without memory behind them, for files that are mapped in parts.
#pragma once
#include <cstddef>

#include "process/fd.h"

namespace tutti::window {

// `wished` bytes, or a power of two less of them, but at least `least`. Throws Error: also where the process has a
// limit on its addresses (ulimit -v), which what has no memory behind it would use up.
UniqueMap reserveAddresses(size_t wished, size_t least);

// What was mapped there is no more, and its addresses stay reserved. False: it is as it was.
bool forgetPages(std::byte* begin, size_t bytes) noexcept;

}  // namespace tutti::window

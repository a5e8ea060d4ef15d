// How a message is cut into segments, and a slot into chunks of them: the same for a call and for what simulates one.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/layout.h"

namespace tutti::kernels {

inline constexpr size_t kCutLine = 64;  // bytes of a cache line

// Bytes of each segment that a slot carries, where it carries so many: whole cache lines if it has any.
constexpr size_t chunkBytes(uint32_t slotBytes, uint32_t segmentsInSlot) noexcept {
  const size_t bytes = slotBytes / segmentsInSlot;
  return bytes < kCutLine ? bytes : bytes / kCutLine * kCutLine;
}

// Cuts a message of `count` elements of 1 << shift bytes into the layout's segments. They start at whole cache lines,
// if the buffer does. Shifts stand for divisions, which would cost a call more than the rest.
constexpr void split(Layout& layout, size_t count, int shift) noexcept {
  const size_t line = kCutLine >> shift;
  const size_t share = count <= line ? count : (count + layout.segments - 1) / layout.segments;
  layout.total = count;
  layout.stride = (share + line - 1) & ~(line - 1);
}

}  // namespace tutti::kernels

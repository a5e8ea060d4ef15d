// The arguments of the kernel that reduces a few runs of memory into others and never waits: what an operation that
// waits in its stream needs where copies are not enough. Plain data.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/arithmetic.h"

namespace tutti::device {

// Sources, and destinations, of one launch: they are its arguments.
inline constexpr uint32_t kMostFolded = 66;

struct Fold {
  const std::byte* from[kMostFolded] = {};  // in the order of the reduction
  std::byte* to[kMostFolded] = {};
  uint32_t fromCount = 0, toCount = 0;
  uint32_t bytes = 0;
  int scaledSource = -1;           // pre-mul-sum: the one that is multiplied by the factor
  kernels::Arithmetic arithmetic;  // a divisor above 1 divides the result
  const void* factorAt = nullptr;  // where the factor is read when the kernel runs; null: it is in `arithmetic`
};
static_assert(sizeof(Fold) <= 4096);

}  // namespace tutti::device

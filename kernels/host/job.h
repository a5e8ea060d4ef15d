// What one run of a kernel does: the arguments of combine(), narrowed to a range of elements.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "kernels/element.h"

namespace tutti::kernels {

struct Job {
  std::byte* const* destinations;
  const std::byte* const* sources;
  int destinationCount;
  int sourceCount;
  size_t begin, end;  // elements
  uint64_t factor;    // kScaledSum: a value of the type, in the low bytes
  int scaledSource;   // kScaledSum
  uint32_t divisor;   // kSum; 1 leaves the sum alone. Integers are divided towards zero
  DataType type;
  Fold fold;
};

// Any type and fold, one element after the other.
void foldScalar(const Job& job) noexcept;
// The same bits, a vector at a time, with the widest vectors that this machine has; into the first destination alone.
// Integers are divided once all are there: who wants that, folds so many at a time as a cache holds.
void foldVector(const Job& job) noexcept;

}  // namespace tutti::kernels

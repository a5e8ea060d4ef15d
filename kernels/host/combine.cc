#include "kernels/host/combine.h"

#include <algorithm>
#include <cstring>

#include "kernels/host/job.h"

namespace tutti::kernels {
namespace {

constexpr size_t kTinyBytes = 32;     // up to here a plain loop is done before a vector kernel has been found
constexpr size_t kBlockBytes = 4096;  // what is written and read again shortly after stays in the L1 cache

bool isInteger(DataType type) { return type <= DataType::kUint64; }

Fold foldOf(ReduceOp op, int scaledSource) {
  switch (op) {
    case ReduceOp::kProd:
      return Fold::kProd;
    case ReduceOp::kMax:
      return Fold::kMax;
    case ReduceOp::kMin:
      return Fold::kMin;
    case ReduceOp::kPreMulSum:
      return scaledSource >= 0 ? Fold::kScaledSum : Fold::kSum;
    default:
      return Fold::kSum;
  }
}

// A source may be one of the destinations, which memcpy does not allow for.
void copy(std::byte* const* destinations, int destinationCount, const std::byte* source, size_t bytes) {
  for (size_t offset = 0; offset < bytes;) {
    const size_t length = destinationCount == 1 ? bytes : std::min(kBlockBytes, bytes - offset);
    for (int d = 0; d < destinationCount; ++d)
      if (destinations[d] != source) std::memcpy(destinations[d] + offset, source + offset, length);
    offset += length;
  }
}

void fold(const Job& job) {
  if ((job.end - job.begin) * sizeOf(job.type) <= kTinyBytes) return foldScalar(job);
  foldVector(job);
}

// Sums a block into the first destination, divides it there, and copies it to the others, while it is in the L1 cache.
void averageIntegers(Job job, uint32_t divisor) {
  const size_t size = sizeOf(job.type);
  const size_t end = job.end;
  const int others = job.destinationCount - 1;
  job.destinationCount = 1;
  for (; job.begin < end; job.begin = job.end) {
    job.end = std::min(end, job.begin + kBlockBytes / size);
    fold(job);
    std::byte* const first = job.destinations[0];
    divideIntegers(job.type, first, job.begin, job.end, divisor);
    for (int d = 1; d <= others; ++d)
      std::memcpy(job.destinations[d] + job.begin * size, first + job.begin * size, (job.end - job.begin) * size);
  }
}

}  // namespace

void combine(const Arithmetic& arithmetic, std::byte* const* destinations, int destinationCount,
             const std::byte* const* sources, int sourceCount, size_t count, int scaledSource) noexcept {
  const Fold how = foldOf(arithmetic.op, scaledSource);
  const uint32_t divisor = arithmetic.op == ReduceOp::kAvg && arithmetic.divisor > 1 ? arithmetic.divisor : 1;
  if (sourceCount == 1 && how != Fold::kScaledSum && divisor == 1)
    return copy(destinations, destinationCount, sources[0], count * sizeOf(arithmetic.type));
  const Job job{destinations,
                sources,
                destinationCount,
                sourceCount,
                0,
                count,
                arithmetic.factor,
                how == Fold::kScaledSum ? scaledSource : -1,
                divisor,
                arithmetic.type,
                how};
  if (divisor > 1 && isInteger(job.type)) return averageIntegers(job, divisor);
  fold(job);
}

}  // namespace tutti::kernels

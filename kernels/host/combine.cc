#include "kernels/host/combine.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/convert.h"
#include "kernels/host/job.h"
#include "kernels/host/write_around.h"

namespace tutti::kernels {
namespace {

constexpr size_t kTinyBytes = 32;     // up to here a plain loop is done before a vector kernel has been found
constexpr size_t kBlockBytes = 4096;  // what is written and read again shortly after stays in the L1 cache

void copyOne(std::byte* to, const std::byte* from, size_t bytes, bool around) {
  if (around)
    copyAround(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

// A source may be one of the destinations, which memcpy does not allow for.
void copy(std::byte* const* destinations, int destinationCount, const std::byte* source, size_t bytes,
          const bool* around) {
  const size_t block = destinationCount == 1 ? bytes : kBlockBytes;
  for (size_t offset = 0; offset < bytes; offset += block) {
    const size_t length = std::min(block, bytes - offset);
    for (int d = 0; d < destinationCount; ++d)
      if (destinations[d] != source)
        copyOne(destinations[d] + offset, source + offset, length, around != nullptr && around[d]);
  }
}

// The sum of a few elements, by which the latency of small calls is measured: not even a Job is made.
template <class T>
void sumTiny(std::byte* const* destinations, int destinationCount, const std::byte* const* sources, int sourceCount,
             size_t count) {
  for (size_t offset = 0; offset < count * sizeof(T); offset += sizeof(T)) {
    T sum, value;
    std::memcpy(&sum, sources[0] + offset, sizeof(T));
    for (int s = 1; s < sourceCount; ++s) {
      std::memcpy(&value, sources[s] + offset, sizeof(T));
      sum += value;
    }
    if constexpr (std::is_floating_point_v<T>) sum = canonical(sum);
    for (int d = 0; d < destinationCount; ++d) std::memcpy(destinations[d] + offset, &sum, sizeof(T));
  }
}

// Of two, as in nearly every step of a small call: no list is walked through.
template <class T>
void sumTinyPair(std::byte* to, const std::byte* a, const std::byte* b, size_t count) {
  for (size_t offset = 0; offset < count * sizeof(T); offset += sizeof(T)) {
    T sum, value;
    std::memcpy(&sum, a + offset, sizeof(T));
    std::memcpy(&value, b + offset, sizeof(T));
    sum += value;
    if constexpr (std::is_floating_point_v<T>) sum = canonical(sum);
    std::memcpy(to + offset, &sum, sizeof(T));
  }
}

// What visit() makes of the type in which so few are added; null: there is none.
template <class Visit>
auto ofTinySum(const Arithmetic& arithmetic, size_t count, Visit visit) noexcept -> decltype(visit(float())) {
  if (arithmetic.op != ReduceOp::kSum || count * sizeOf(arithmetic.type) > kTinyBytes) return nullptr;
  switch (arithmetic.type) {
    case DataType::kFloat32:
      return visit(float());
    case DataType::kFloat64:
      return visit(double());
    case DataType::kInt32:
    case DataType::kUint32:
      return visit(uint32_t());
    case DataType::kInt64:
    case DataType::kUint64:
      return visit(uint64_t());
    default:
      return nullptr;
  }
}

// Makes a block in the first destination, divides it there, and copies it to the others, while it is in the L1 cache.
// (Stores to many places in turn would have their cache lines, often at equal offsets in a page, evict each other.)
// Where the first destination is written around the caches, the block is made elsewhere, and copied to all. (Small
// calls do not come here, and want no such block on their stack.)
[[gnu::noinline]] void foldInBlocks(Job job, int destinationCount, const bool* around) {
  alignas(64) std::byte made[kBlockBytes];
  const bool elsewhere = around != nullptr && around[0];
  std::byte* const* const destinations = job.destinations;
  std::byte* first = destinations[0];
  job.destinations = &first;
  const size_t size = sizeOf(job.type);
  const size_t end = job.end;
  for (; job.begin < end; job.begin = job.end) {
    job.end = std::min(end, job.begin + kBlockBytes / size);
    const size_t at = job.begin * size, bytes = job.end * size - at;
    // A job's elements are counted from where the first would lie.
    if (elsewhere) first = reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(made) - at);
    foldVector(job);
    for (int d = elsewhere ? 0 : 1; d < destinationCount; ++d)
      copyOne(destinations[d] + at, first + at, bytes, around != nullptr && around[d]);
  }
}

void combineInto(const Arithmetic& arithmetic, std::byte* const* destinations, int destinationCount,
                 const std::byte* const* sources, int sourceCount, size_t count, int scaledSource,
                 const bool* around) noexcept {
  const DataType type = arithmetic.type;
  const size_t bytes = count * sizeOf(type);
  const bool scaled = arithmetic.op == ReduceOp::kPreMulSum && scaledSource >= 0;
  const bool divided = arithmetic.op == ReduceOp::kAvg && arithmetic.divisor > 1;
  if (sourceCount == 1 && !scaled && !divided) return copy(destinations, destinationCount, sources[0], bytes, around);
  if (TinySum* const sums = tinySumOf(arithmetic, count))
    return sums(destinations, destinationCount, sources, sourceCount, count);
  const Job job{destinations,
                sources,
                destinationCount,
                sourceCount,
                0,
                count,
                arithmetic.factor,
                scaled ? scaledSource : -1,
                divided ? arithmetic.divisor : 1,
                type,
                foldOf(arithmetic.op, scaled)};
  if (bytes <= kTinyBytes) return foldScalar(job);
  const bool dividedApart = divided && !rowOf(type).isFloat();
  if (destinationCount > 1 || dividedApart || around != nullptr) return foldInBlocks(job, destinationCount, around);
  foldVector(job);
}

}  // namespace

TinySum* tinySumOf(const Arithmetic& arithmetic, size_t count) noexcept {
  return ofTinySum(arithmetic, count, []<class T>(T) -> TinySum* { return sumTiny<T>; });
}

TinyPairSum* tinyPairSumOf(const Arithmetic& arithmetic, size_t count) noexcept {
  return ofTinySum(arithmetic, count, []<class T>(T) -> TinyPairSum* { return sumTinyPair<T>; });
}

void combine(const Arithmetic& arithmetic, std::byte* const* destinations, int destinationCount,
             const std::byte* const* sources, int sourceCount, size_t count, int scaledSource,
             const bool* around) noexcept {
  combineInto(arithmetic, destinations, destinationCount, sources, sourceCount, count, scaledSource, around);
  if (around != nullptr) settle();
}

}  // namespace tutti::kernels

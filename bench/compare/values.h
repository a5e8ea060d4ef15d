// What the ranks put into their vectors, and what has to come out: small whole numbers, whose sums every type holds
// exactly.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cell.h"

namespace tutti::compare {

// 13 numbers in turn, from a place that goes by the rank: parts that have changed places show.
inline constexpr size_t kPeriod = 13;
inline int valueOf(size_t element, int rank) {
  return 1 + static_cast<int>((element + 5 * static_cast<size_t>(rank)) % kPeriod);
}
inline int sumOf(size_t element, int ranks) {
  int sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += valueOf(element, rank);
  return sum;
}

inline uint16_t bfloat16Of(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); }
// Of whole numbers from 1 to 2048, which it holds exactly.
inline uint16_t halfOf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((((bits >> 23) - 127 + 15) << 10) | ((bits >> 13) & 0x3ff));
}

template <class Element>
void put(std::byte* vector, size_t at, Element element) {
  std::memcpy(vector + at * sizeof element, &element, sizeof element);
}

inline void put(Type type, std::byte* vector, size_t at, int value) {
  switch (type) {
    case Type::kFloat:
      return put(vector, at, static_cast<float>(value));
    case Type::kDouble:
      return put(vector, at, static_cast<double>(value));
    case Type::kInt32:
      return put(vector, at, static_cast<int32_t>(value));
    case Type::kHalf:
      return put(vector, at, halfOf(static_cast<float>(value)));
    case Type::kBfloat16:
      return put(vector, at, bfloat16Of(static_cast<float>(value)));
  }
}

// `count` elements as rank `rank` has them from element `first` of its vector on.
inline void fill(Type type, std::byte* vector, size_t first, size_t count, int rank) {
  const size_t size = sizeOf(type), pattern = std::min(count, kPeriod);
  for (size_t i = 0; i < pattern; ++i) put(type, vector, i, valueOf(first + i, rank));
  for (size_t done = pattern; done < count;) {  // twice as much each time, in whole periods
    const size_t more = std::min(done / kPeriod * kPeriod, count - done);
    std::memcpy(vector + done * size, vector, more * size);
    done += more;
  }
}

// What the element of rank's result has to be, counted from the start of the vector that it sees.
inline int expected(const Cell& cell, size_t element, int rank, int ranks) {
  const size_t part = cell.part(ranks);
  switch (cell.operation) {
    case Operation::kAllReduce:
      return sumOf(element, ranks);
    case Operation::kReduceScatter:
      return sumOf(static_cast<size_t>(rank) * part + element, ranks);
    case Operation::kAllGather:
      return valueOf(element % part, static_cast<int>(element / part));
    case Operation::kBroadcast:
      return valueOf(element, 0);
  }
  return 0;
}

// The first wrong element of the result, or -1. Of long results a sample, with their ends.
inline long firstWrong(const Cell& cell, const std::byte* result, int rank, int ranks) {
  const size_t count = cell.operation == Operation::kReduceScatter ? cell.part(ranks) : cell.whole(ranks);
  const size_t size = sizeOf(cell.type), stride = count > (1u << 18) ? 251 : 1;
  for (size_t i = 0; i < count; i = i + stride < count || i + 1 == count ? i + stride : count - 1) {
    std::byte wanted[8];
    put(cell.type, wanted, 0, expected(cell, i, rank, ranks));
    if (std::memcmp(wanted, result + i * size, size) != 0) return static_cast<long>(i);
  }
  return -1;
}

}  // namespace tutti::compare

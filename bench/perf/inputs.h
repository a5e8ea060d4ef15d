// What the ranks send, and what must come out: the same bits whatever the order of the reduction.
//
// How. Elements follow a table of kPeriod entries, of which each rank makes its own. For reductions the entries are
// such that every partial result over any subset of the ranks is exactly representable:
//   sum, avg, mulsum of floats: signed multiples of one unit per element; over all ranks the magnitudes add up to at
//   most
//     2^p units (p significant bits), so any subset sum is exact. Where there are more ranks than units, a window of
//     ranks that moves with the element has one unit each, and the rest zero. The average is one correctly rounded
//     division.
//   mulsum: each rank's factor is a signed power of two, and its input the sum's entry divided by it.
//   prod of floats: signed powers of two whose exponents' magnitudes add up to less than the format's range, one of the
//     ranks with a full significand.
//   max, min of floats: any finite value but zero (two zeros compare equal and differ in bits).
//   integers: any bits; they wrap, which is exact in every order. Factors of a product are odd, or it would soon be
//   zero. Of each bit few ranks have what decides band or bor.
//   bool: any bytes, which are true or not; the result is 0 or 1.
// Zeros are always positive. For collectives that only move data, any bits.
//
// The table is walked from a start that changes, by a hash of the seed, with every period: so data that arrive late,
// from another call, at the wrong place or from the wrong rank do not match.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "perf/types.h"

namespace tutti::perf {

inline constexpr size_t kPeriod = 4099;  // a prime, so that no usual chunk size is a multiple of it

// A sequence of elements without end. `key` turns it; two sequences over one table with different keys differ.
struct Sequence {
  const std::byte* table = nullptr;  // kPeriod elements
  size_t elementSize = 0;
  uint64_t key = 0;

  // Writes elements [begin, begin + count) to `to`.
  void write(size_t begin, size_t count, std::byte* to) const;
};

// The tables of one rank for one type and operator.
class Inputs {
 public:
  // Of a reduction over `ranks` ranks.
  static Inputs reduction(tuttiDataType_t type, Operator op, int ranks, int rank);
  // Of a collective that only moves data.
  static Inputs movement(tuttiDataType_t type);

  // What `rank` sends in the run with this seed. Of a reduction: only one's own rank can be asked.
  Sequence sent(int rank, uint64_t seed) const;
  // What a reduction gives.
  Sequence reduced(uint64_t seed) const;

 private:
  Inputs(tuttiDataType_t type, bool reduces) : elementSize_(sizeOf(type)), reduces_(reduces) {}
  size_t elementSize_;
  bool reduces_;
  std::vector<std::byte> sent_, reduced_;
};

// One table entry, as bits of the type: what `rank` of `ranks` contributes to entry `index`.
uint64_t contribution(tuttiDataType_t type, Operator op, int ranks, int rank, size_t index);
// The result over all ranks.
uint64_t expectation(tuttiDataType_t type, Operator op, int ranks, size_t index);
// Rank's factor for mulsum, as bits of the type.
uint64_t factorOf(tuttiDataType_t type, int rank);

// A well-mixed 64-bit hash of a few numbers.
uint64_t hash(uint64_t a, uint64_t b = 0, uint64_t c = 0);

}  // namespace tutti::perf

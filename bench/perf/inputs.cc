#include "perf/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tutti::perf {
namespace {

uint64_t mix(uint64_t x) {
  // The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t truncate(tuttiDataType_t type, uint64_t bits) {
  const size_t size = sizeOf(type);
  return size == 8 ? bits : bits & ((uint64_t{1} << (8 * size)) - 1);
}

// A type's integer bits as a 64-bit one of the same value.
int64_t widen(tuttiDataType_t type, uint64_t bits) {
  const int unused = 64 - 8 * static_cast<int>(sizeOf(type));
  return isSigned(type) ? static_cast<int64_t>(bits << unused) >> unused : static_cast<int64_t>(truncate(type, bits));
}

// How many of `budget` equal parts `rank` may use at this entry, when no more than the budget may be used in all.
int64_t shareOf(int64_t budget, int ranks, int rank, size_t index) {
  if (budget >= ranks) return budget / ranks;
  const auto turned = (static_cast<uint64_t>(rank) + hash(index, 0x77)) % static_cast<uint64_t>(ranks);
  return static_cast<int64_t>(turned) < budget ? 1 : 0;
}

// Uniform in [-limit, limit] without zero; zero when the limit is.
int64_t signedNumber(uint64_t random, int64_t limit) {
  if (limit == 0) return 0;
  const auto magnitude = static_cast<int64_t>(1 + (random >> 1) % static_cast<uint64_t>(limit));
  return random & 1 ? -magnitude : magnitude;
}

// The unit in which an entry's sums are counted: a power of two that leaves room for 2^p units and a factor of two.
int unitExponent(tuttiDataType_t type, size_t index) {
  const uint64_t random = hash(index, 0x51);
  if (type == tuttiFloat8e4m3) return static_cast<int>(random % 7) - 3;
  if (type == tuttiFloat8e5m2) return static_cast<int>(random % 17) - 8;
  if (type == tuttiFloat16) return static_cast<int>(random % 12) - 8;
  return static_cast<int>(random % 33) - 16;
}

int64_t addend(tuttiDataType_t type, int ranks, int rank, size_t index) {
  const int64_t budget = int64_t{1} << formatOf(type).significant;
  return signedNumber(hash(index, static_cast<uint64_t>(rank), 0xadd), shareOf(budget, ranks, rank, index));
}

// Signed and a power of two, so that a rank's input times it is exact.
double floatFactor(int rank) { return std::ldexp(rank % 2 == 0 ? 1.0 : -1.0, rank % 3 - 1); }

double floatMultiplicand(tuttiDataType_t type, int ranks, int rank, size_t index) {
  const FloatFormat format = formatOf(type);
  // One less than the format's largest exponent: the full significand takes up to one.
  const int64_t budget = format.bias - 2;
  const uint64_t random = hash(index, static_cast<uint64_t>(rank), 0x3d);
  const int64_t share = shareOf(budget, ranks, rank, index);
  const auto exponent = static_cast<int>(signedNumber(random >> 1, share));
  const bool full = static_cast<int>(hash(index, 0xf0) % static_cast<uint64_t>(ranks)) == rank;
  const int stored = format.significant - 1;
  const uint64_t fraction = full ? (random >> 8) & ((uint64_t{1} << stored) - 1) : 0;
  const double significand = 1.0 + std::ldexp(static_cast<double>(fraction), -stored);
  return std::ldexp(random & 1 ? -significand : significand, exponent);
}

// Any finite bits but the zeros.
uint64_t comparedBits(tuttiDataType_t type, uint64_t random) {
  const FloatFormat format = formatOf(type);
  const int stored = format.significant - 1;
  const uint64_t exponentMask = ((uint64_t{1} << format.exponentBits) - 1) << stored;
  uint64_t bits = truncate(type, random);
  if ((bits & exponentMask) == exponentMask) bits ^= uint64_t{1} << (stored + format.exponentBits - 1);
  const uint64_t magnitudeMask = exponentMask | ((uint64_t{1} << stored) - 1);
  return (bits & magnitudeMask) == 0 ? bits | (uint64_t{1} << stored) : bits;
}

uint64_t floatContribution(tuttiDataType_t type, Operator op, int ranks, int rank, size_t index) {
  switch (op) {
    case Operator::kProd:
      return encode(type, floatMultiplicand(type, ranks, rank, index));
    case Operator::kMax:
    case Operator::kMin:
      return comparedBits(type, hash(index, static_cast<uint64_t>(rank), 0xca));
    default:
      break;
  }
  const int64_t units = addend(type, ranks, rank, index);
  if (units == 0) return 0;
  const double value = std::ldexp(static_cast<double>(units), unitExponent(type, index));
  return encode(type, op == Operator::kMulSum ? value / floatFactor(rank) : value);
}

double floatExpectation(tuttiDataType_t type, Operator op, int ranks, size_t index) {
  if (op == Operator::kProd || op == Operator::kMax || op == Operator::kMin) {
    double result = decode(type, floatContribution(type, op, ranks, 0, index));
    for (int rank = 1; rank < ranks; ++rank) {
      const double value = decode(type, floatContribution(type, op, ranks, rank, index));
      result = op == Operator::kProd ? result * value
                                     : (op == Operator::kMax ? std::max(result, value) : std::min(result, value));
    }
    return result;
  }
  int64_t units = 0;
  for (int rank = 0; rank < ranks; ++rank) units += addend(type, ranks, rank, index);
  const double sum = std::ldexp(static_cast<double>(units), unitExponent(type, index));
  return op == Operator::kAvg ? sum / ranks : sum;
}

// Of each bit, one in as many ranks as there are has it, or two: if half of them had, all would be set once "or" has
// seen many.
uint64_t rareBits(uint64_t random, int ranks) {
  uint64_t bits = random;
  for (int rest = ranks; rest > 1; rest /= 2) bits &= random = hash(random, 0xb175);
  return bits;
}

uint64_t integerContribution(tuttiDataType_t type, Operator op, int ranks, int rank, size_t index) {
  const uint64_t random = hash(index, static_cast<uint64_t>(rank), 0x1e7);
  if (op == Operator::kBitAnd) return truncate(type, ~rareBits(random, ranks));
  if (op == Operator::kBitOr) return truncate(type, rareBits(random, ranks));
  return truncate(type, op == Operator::kProd ? random | 1 : random);
}

uint64_t integerCombine(tuttiDataType_t type, Operator op, uint64_t a, uint64_t b) {
  if (op == Operator::kProd) return a * b;
  if (op == Operator::kBitAnd) return a & b;
  if (op == Operator::kBitOr) return a | b;
  if (op == Operator::kBitXor) return a ^ b;
  if (op != Operator::kMax && op != Operator::kMin) return a + b;
  const int64_t left = widen(type, a), right = widen(type, b);
  const bool less = isSigned(type) ? left < right : static_cast<uint64_t>(left) < static_cast<uint64_t>(right);
  return less == (op == Operator::kMin) ? a : b;
}

uint64_t integerExpectation(tuttiDataType_t type, Operator op, int ranks, size_t index) {
  uint64_t result = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    uint64_t value = integerContribution(type, op, ranks, rank, index);
    if (op == Operator::kMulSum) value *= factorOf(type, rank);
    result = rank == 0 ? value : integerCombine(type, op, result, value);
  }
  if (op != Operator::kAvg) return truncate(type, result);
  const int64_t sum = widen(type, truncate(type, result));
  const uint64_t average =
      isSigned(type) ? static_cast<uint64_t>(sum / ranks) : static_cast<uint64_t>(sum) / static_cast<uint64_t>(ranks);
  return truncate(type, average);
}

bool isAnd(Operator op) { return op == Operator::kProd || op == Operator::kMin || op == Operator::kBitAnd; }

// What is true is so by any of its bits.
uint64_t truthContribution(Operator op, int ranks, int rank, size_t index) {
  const uint64_t random = hash(index, static_cast<uint64_t>(rank), 0xb001);
  const bool rare = op == Operator::kBitXor ? random & 1 : rareBits(random, ranks) & 1;
  return rare != isAnd(op) ? 1 + (random >> 1) % 255 : 0;
}

uint64_t truthExpectation(Operator op, int ranks, size_t index) {
  int truths = 0;
  for (int rank = 0; rank < ranks; ++rank) truths += truthContribution(op, ranks, rank, index) != 0;
  if (op == Operator::kBitXor) return static_cast<uint64_t>(truths % 2);
  return isAnd(op) ? truths == ranks : truths > 0;
}

template <class Entry>
std::vector<std::byte> tableOf(size_t elementSize, const Entry& entry) {
  std::vector<std::byte> table(kPeriod * elementSize);
  for (size_t i = 0; i < kPeriod; ++i) {
    const uint64_t bits = entry(i);  // the low bytes come first: the host is little endian, as all of tutti's are
    std::memcpy(table.data() + i * elementSize, &bits, elementSize);
  }
  return table;
}

}  // namespace

uint64_t hash(uint64_t a, uint64_t b, uint64_t c) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  return mix(mix(mix(a + kGolden) + b + kGolden) + c + kGolden);
}

uint64_t contribution(tuttiDataType_t type, Operator op, int ranks, int rank, size_t index) {
  if (type == tuttiBool) return truthContribution(op, ranks, rank, index);
  return isFloat(type) ? floatContribution(type, op, ranks, rank, index)
                       : integerContribution(type, op, ranks, rank, index);
}

uint64_t expectation(tuttiDataType_t type, Operator op, int ranks, size_t index) {
  if (type == tuttiBool) return truthExpectation(op, ranks, index);
  return isFloat(type) ? encode(type, floatExpectation(type, op, ranks, index))
                       : integerExpectation(type, op, ranks, index);
}

uint64_t factorOf(tuttiDataType_t type, int rank) {
  return isFloat(type) ? encode(type, floatFactor(rank)) : static_cast<uint64_t>(3 + 2 * (rank % 4));
}

void Sequence::write(size_t begin, size_t count, std::byte* to) const {
  while (count > 0) {
    const size_t period = begin / kPeriod;
    const size_t offset = begin % kPeriod;
    const size_t at = (offset + hash(key, period) % kPeriod) % kPeriod;
    const size_t run = std::min({count, kPeriod - offset, kPeriod - at});
    std::memcpy(to, table + at * elementSize, run * elementSize);
    begin += run;
    count -= run;
    to += run * elementSize;
  }
}

Inputs Inputs::reduction(tuttiDataType_t type, Operator op, int ranks, int rank) {
  Inputs inputs(type, true);
  inputs.sent_ = tableOf(inputs.elementSize_, [&](size_t i) { return contribution(type, op, ranks, rank, i); });
  inputs.reduced_ = tableOf(inputs.elementSize_, [&](size_t i) { return expectation(type, op, ranks, i); });
  return inputs;
}

Inputs Inputs::movement(tuttiDataType_t type) {
  Inputs inputs(type, false);
  inputs.sent_ = tableOf(inputs.elementSize_, [](size_t i) { return hash(i, 0xda7a); });
  return inputs;
}

Sequence Inputs::sent(int rank, uint64_t seed) const {
  return {sent_.data(), elementSize_, reduces_ ? hash(seed) : hash(seed, static_cast<uint64_t>(rank) + 1)};
}

Sequence Inputs::reduced(uint64_t seed) const { return {reduced_.data(), elementSize_, hash(seed)}; }

}  // namespace tutti::perf

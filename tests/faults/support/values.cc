#include "faults/support/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "faults/support/forms.h"

namespace tutti::faults {
namespace {

// The value of an integer's bits: sign-extended where the type has a sign.
int64_t extend(uint64_t bits, const Form& form) noexcept {
  const int unused = 64 - 8 * form.bytes;
  const auto shifted = static_cast<int64_t>(bits << unused);
  return form.isSigned ? shifted >> unused : static_cast<int64_t>((bits << unused) >> unused);
}

bool less(uint64_t a, uint64_t b, const Form& form) noexcept {
  return form.isSigned ? extend(a, form) < extend(b, form)
                       : static_cast<uint64_t>(extend(a, form)) < static_cast<uint64_t>(extend(b, form));
}

uint64_t divide(uint64_t sum, int ranks, const Form& form) noexcept {
  const int64_t value = extend(sum, form);
  if (form.isSigned) return static_cast<uint64_t>(value / ranks);
  return static_cast<uint64_t>(value) / static_cast<uint64_t>(ranks);
}

// The largest integer up to which the type holds every one.
double exactUpTo(const Form& form) noexcept { return std::ldexp(1.0, std::min<int>(form.fractionBits, 40) + 1); }

}  // namespace

size_t sizeOf(tuttiDataType_t type) noexcept { return formOf(type).bytes; }
const char* nameOf(tuttiDataType_t type) noexcept { return formOf(type).name; }
bool isFloat(tuttiDataType_t type) noexcept { return formOf(type).exponentBits != 0; }

bool isDefined(int op, tuttiDataType_t type) noexcept {
  if (type == tuttiBool) return op != tuttiAvg && op != kPreMulSum;
  return op < tuttiBitAnd || !isFloat(type);
}

const char* nameOfOp(int op) noexcept {
  constexpr const char* kNames[] = {"sum", "prod", "max", "min", "avg", "mulsum", "band", "bor", "bxor"};
  return kNames[std::find(std::begin(kOps), std::end(kOps), op) - std::begin(kOps)];
}

// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014), chained.
uint64_t mix(uint64_t a, uint64_t b, uint64_t c) noexcept {
  uint64_t x = 0;
  for (const uint64_t word : {a, b, c}) {
    x += word + 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    x ^= x >> 31;
  }
  return x;
}

void fillRaw(std::byte* to, uint64_t stream, size_t bytes) noexcept {
  uint64_t state = stream;
  for (size_t done = 0; done < bytes; done += 8) {
    state += 0x9e3779b97f4a7c15;
    const uint64_t word = (state ^ state >> 29) * 0xbf58476d1ce4e5b9;
    std::memcpy(to + done, &word, std::min<size_t>(8, bytes - done));
  }
}

Reduction::Reduction(tuttiDataType_t type, int op, int ranks, uint64_t salt) noexcept
    : type_(type), op_(op), ranks_(ranks), salt_(salt) {}

// Half of what is true has any bits, and half of all is not.
uint64_t Reduction::integer(int rank, size_t index) const noexcept {
  const uint64_t bits = mix(salt_, index, static_cast<uint64_t>(rank));
  return type_ == tuttiBool && bits >> 8 & 1 ? 0 : bits;
}

uint64_t Reduction::factorInteger(int rank) const noexcept {
  return mix(salt_, ~uint64_t{0}, static_cast<uint64_t>(rank));
}

double Reduction::factorNumber(int rank) const noexcept {
  const uint64_t bits = factorInteger(rank);
  const double sign = bits & 1 ? -1 : 1;
  return exactUpTo(formOf(type_)) >= 4 * ranks_ && bits & 2 ? 2 * sign : sign;
}

// Sums stay below what the type counts to without a gap. Products are of 1, -1 and 2. A quotient is exact when the
// number of ranks is a power of two, or when one rank alone contributes, a multiple of their number.
double Reduction::number(int rank, size_t index) const noexcept {
  const uint64_t bits = integer(rank, index);
  const auto draw = [bits](double limit) {
    const auto whole = static_cast<int64_t>(limit);
    return static_cast<double>(static_cast<int64_t>(bits % static_cast<uint64_t>(2 * whole + 1)) - whole);
  };
  const double limit = exactUpTo(formOf(type_));
  switch (op_) {
    case tuttiProd:
      return bits % 3 == 0 ? 2 : bits % 3 == 1 ? 1 : -1;
    case tuttiMax:
    case tuttiMin:
      return draw(limit);
    case tuttiAvg:
      if (std::has_single_bit(static_cast<unsigned>(ranks_))) return draw(limit / ranks_);
      return index % static_cast<size_t>(ranks_) == static_cast<size_t>(rank) ? ranks_ * draw(2) : 0;
    case kPreMulSum:
      return draw(std::max(1.0, limit / ranks_ / 2));
    default:
      return draw(limit / ranks_);
  }
}

double Reduction::combineNumbers(size_t index) const noexcept {
  double result = op_ == kPreMulSum ? number(0, index) * factorNumber(0) : number(0, index);
  for (int rank = 1; rank < ranks_; ++rank) {
    const double next = number(rank, index);
    if (op_ == tuttiProd)
      result *= next;
    else if (op_ == tuttiMax)
      result = std::max(result, next);
    else if (op_ == tuttiMin)
      result = std::min(result, next);
    else
      result += op_ == kPreMulSum ? next * factorNumber(rank) : next;
  }
  return op_ == tuttiAvg ? result / ranks_ : result;
}

uint64_t Reduction::combineIntegers(size_t index) const noexcept {
  if (type_ == tuttiBool) return combineTruths(index);
  const Form& form = formOf(type_);
  uint64_t result = integer(0, index) * (op_ == kPreMulSum ? factorInteger(0) : 1);
  for (int rank = 1; rank < ranks_; ++rank) {
    const uint64_t next = integer(rank, index);
    if (op_ == tuttiProd)
      result *= next;
    else if (op_ == tuttiMax)
      result = less(result, next, form) ? next : result;
    else if (op_ == tuttiMin)
      result = less(next, result, form) ? next : result;
    else if (op_ == tuttiBitAnd)
      result &= next;
    else if (op_ == tuttiBitOr)
      result |= next;
    else if (op_ == tuttiBitXor)
      result ^= next;
    else
      result += op_ == kPreMulSum ? next * factorInteger(rank) : next;
  }
  return op_ == tuttiAvg ? divide(result, ranks_, form) : result;
}

uint64_t Reduction::combineTruths(size_t index) const noexcept {
  int truths = 0;
  for (int rank = 0; rank < ranks_; ++rank) truths += (integer(rank, index) & 0xff) != 0;
  if (op_ == tuttiBitXor) return static_cast<uint64_t>(truths % 2);
  const bool all = op_ == tuttiProd || op_ == tuttiMin || op_ == tuttiBitAnd;
  return all ? truths == ranks_ : truths > 0;
}

void Reduction::contribute(std::byte* to, int rank, size_t first, size_t count) const noexcept {
  const Form& form = formOf(type_);
  for (size_t i = 0; i < count; ++i)
    store(to + i * form.bytes, form.exponentBits ? encode(number(rank, first + i), form) : integer(rank, first + i),
          form.bytes);
}

void Reduction::combine(std::byte* to, size_t first, size_t count) const noexcept {
  const Form& form = formOf(type_);
  for (size_t i = 0; i < count; ++i)
    store(to + i * form.bytes, form.exponentBits ? encode(combineNumbers(first + i), form) : combineIntegers(first + i),
          form.bytes);
}

void Reduction::factor(std::byte* to, int rank) const noexcept {
  const Form& form = formOf(type_);
  store(to, form.exponentBits ? encode(factorNumber(rank), form) : factorInteger(rank), form.bytes);
}

Spelled spell(const std::byte* element, tuttiDataType_t type) noexcept {
  const Form& form = formOf(type);
  const uint64_t bits = load(element, form.bytes);
  Spelled spelled;
  if (form.exponentBits)
    std::snprintf(spelled.text, sizeof spelled.text, "0x%llx (%g)", static_cast<unsigned long long>(bits),
                  decode(bits, form));
  else
    std::snprintf(spelled.text, sizeof spelled.text, "0x%llx", static_cast<unsigned long long>(bits));
  return spelled;
}

bool sameElement(const std::byte* a, const std::byte* b, tuttiDataType_t type) noexcept {
  const Form& form = formOf(type);
  const uint64_t left = load(a, form.bytes), right = load(b, form.bytes);
  if (left == right) return true;
  const uint64_t withoutSign = (uint64_t{1} << (8 * form.bytes - 1)) - 1;
  return form.exponentBits && ((left | right) & withoutSign) == 0;
}

}  // namespace tutti::faults

#include "faults/support/rounding.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>

#include "faults/support/forms.h"
#include "faults/support/values.h"

namespace tutti::faults {

Rounding::Rounding(tuttiDataType_t type, int op, int ranks, uint64_t salt) noexcept
    : type_(type), op_(op), ranks_(ranks), salt_(salt) {
  const Form& form = formOf(type_);
  const long double stored = std::log1p(std::ldexp(1.0L, -form.fractionBits - 1));
  const long double added = form.bytes < 4 ? std::log1p(std::ldexp(1.0L, -24)) : 0;
  logOfRounding_ = stored + added;
}

// The same with an exponent from 1/4 to 2.
uint64_t Rounding::near(uint64_t drawn) const noexcept {
  const Form& form = formOf(type_);
  const uint64_t exponents = ((uint64_t{1} << form.exponentBits) - 1) << form.fractionBits;
  const uint64_t bias = (uint64_t{1} << (form.exponentBits - 1)) - 1;
  return (drawn & ~exponents) | (bias - 2 + mix(drawn) % 4) << form.fractionBits;
}

// The same sign, with any number of digits below the smallest normal number.
uint64_t Rounding::small(uint64_t drawn) const noexcept {
  const Form& form = formOf(type_);
  const uint64_t normal = uint64_t{1} << form.fractionBits;
  const uint64_t sign = drawn & normal << form.exponentBits;
  return sign | ((drawn & (normal - 1)) | normal) >> mix(drawn) % (static_cast<uint64_t>(form.fractionBits) + 2);
}

uint64_t Rounding::bits(int rank, size_t index) const noexcept {
  const uint64_t drawn = mix(salt_, index, static_cast<uint64_t>(rank)) >> (64 - 8 * formOf(type_).bytes);
  if (salt_ % 2 == 0) return near(drawn);
  return salt_ % 4 == 3 ? small(drawn) : drawn;
}

uint64_t Rounding::factorBits(int rank) const noexcept {
  return near(mix(salt_, ~uint64_t{0}, static_cast<uint64_t>(rank)) >> (64 - 8 * formOf(type_).bytes));
}

void Rounding::contribute(std::byte* to, int rank, size_t first, size_t count) const noexcept {
  const size_t bytes = formOf(type_).bytes;
  for (size_t i = 0; i < count; ++i) store(to + i * bytes, bits(rank, first + i), bytes);
}

void Rounding::factor(std::byte* to, int rank) const noexcept { store(to, factorBits(rank), formOf(type_).bytes); }

// By how much a number can have grown after so many operations, each rounded: of a narrow type in float, and once more
// when it is stored.
long double Rounding::growth(int roundings) const noexcept {
  return std::expm1(static_cast<long double>(roundings) * logOfRounding_);
}

// A sum of n terms takes n - 1 additions in any order, and one rounding more of a factor or a quotient. Whatever they
// are, their errors grow with the sum of the terms' sizes. Below the normal numbers an error has a size of its own.
Rounding::Exact Rounding::exactSum(size_t index) const noexcept {
  const Form& form = formOf(type_);
  long double sum = 0, sizes = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    long double term = decode(bits(rank, index), form);
    if (op_ == kPreMulSum) term *= decode(factorBits(rank), form);
    sum += term;
    sizes += std::fabs(term);
  }
  const int roundings = ranks_ - 1 + (op_ == kPreMulSum || op_ == tuttiAvg ? 1 : 0);
  Exact found;
  const long double reach = sizes * growth(roundings);
  found.known = sizes + reach < largest(form);
  found.value = op_ == tuttiAvg ? sum / ranks_ : sum;
  found.bound = (op_ == tuttiAvg ? reach / ranks_ : reach) + ranks_ * sizes * LDBL_EPSILON +
                (roundings + ranks_) * (smallest(form) / 2);
  return found;
}

Rounding::Exact Rounding::exactProduct(size_t index) const noexcept {
  const Form& form = formOf(type_);
  long double product = 1, above = 1, below = 1;  // of all factors; of those above one, and below
  for (int rank = 0; rank < ranks_; ++rank) {
    const long double factor = decode(bits(rank, index), form);
    product *= factor;
    above *= std::max(1.0L, std::fabs(factor));
    below *= std::min(1.0L, std::fabs(factor));
  }
  Exact found;
  found.known = above * (1 + growth(ranks_)) < largest(form) && below > 2 * smallestNormal(form);
  found.value = product;
  found.bound = std::fabs(product) * (growth(ranks_ - 1) + ranks_ * LDBL_EPSILON);
  return found;
}

Rounding::Exact Rounding::exact(size_t index) const noexcept {
  bool finite = true, hasNan = false;
  for (int rank = 0; rank < ranks_; ++rank) {
    finite = finite && isFinite(bits(rank, index), formOf(type_));
    hasNan = hasNan || isNan(bits(rank, index), formOf(type_));
  }
  Exact found;
  if (finite) found = op_ == tuttiProd ? exactProduct(index) : exactSum(index);
  found.hasNan = hasNan;
  return found;
}

// None of the contributions is NaN.
uint64_t Rounding::extreme(size_t index) const noexcept {
  uint64_t best = bits(0, index);
  for (int rank = 1; rank < ranks_; ++rank) {
    const uint64_t next = bits(rank, index);
    const double here = decode(next, formOf(type_)), there = decode(best, formOf(type_));
    if (op_ == tuttiMax ? here > there : here < there) best = next;
  }
  return best;
}

bool Rounding::suits(uint64_t got, size_t index) const noexcept {
  const Form& form = formOf(type_);
  const Exact right = exact(index);
  if (right.hasNan) return isNan(got, form);
  if (op_ == tuttiMax || op_ == tuttiMin) {
    std::byte one[8], other[8];
    store(one, got, form.bytes);
    store(other, extreme(index), form.bytes);
    return sameElement(one, other, type_);
  }
  if (!right.known) return true;
  return isFinite(got, form) && std::fabs(decode(got, form) - right.value) <= right.bound;
}

std::string Rounding::judge(const std::byte* got, size_t first, size_t count) const {
  const size_t bytes = formOf(type_).bytes;
  for (size_t i = 0; i < count; ++i) {
    const std::byte* const element = got + i * bytes;
    if (suits(load(element, bytes), first + i)) continue;
    const Exact right = exact(first + i);
    char text[200];
    std::snprintf(text, sizeof text, "element %zu: expected %s%.10Lg, give or take %.3Lg, got %s", i,
                  right.hasNan ? "NaN, not " : "", right.value, right.bound, spell(element, type_).text);
    return text;
  }
  return "";
}

}  // namespace tutti::faults

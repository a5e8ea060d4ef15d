#include "faults/support/forms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/data_type.h"

namespace tutti::faults {
namespace {

constexpr std::array<Form, kDataTypes> everyForm() {
  std::array<Form, kDataTypes> forms{};
  for (const DataTypeRow& row : kDataTypeRows)
    forms[static_cast<size_t>(row.type)] = {row.name.data(), row.bytes, row.exponentBits, row.mantissaBits,
                                            row.isSigned};
  return forms;
}
constexpr auto kForms = everyForm();

int biasOf(const Form& form) noexcept { return (1 << (form.exponentBits - 1)) - 1; }
uint64_t mantissaOf(uint64_t bits, const Form& form) noexcept {
  return bits & ((uint64_t{1} << form.fractionBits) - 1);
}
bool hasTopExponent(uint64_t bits, const Form& form) noexcept {
  const uint64_t top = (uint64_t{1} << form.exponentBits) - 1;
  return (bits >> form.fractionBits & top) == top;
}
bool hasInfinities(const Form& form) noexcept { return form.exponentBits != 4; }

}  // namespace

const Form& formOf(tuttiDataType_t type) noexcept {
  return kForms[static_cast<size_t>(std::max(rowOfNumber(type), 0))];
}

uint64_t encode(double value, const Form& form) noexcept {
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (form.exponentBits + form.fractionBits) : 0;
  if (value == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const int bias = (1 << (form.exponentBits - 1)) - 1;
  const auto mantissa = static_cast<uint64_t>(std::ldexp(fraction, form.fractionBits + 1));
  const auto biased = static_cast<uint64_t>(exponent - 1 + bias);
  return sign | biased << form.fractionBits | (mantissa & ((uint64_t{1} << form.fractionBits) - 1));
}

double decode(uint64_t bits, const Form& form) noexcept {
  const uint64_t mantissa = bits & ((uint64_t{1} << form.fractionBits) - 1);
  const uint64_t biased = bits >> form.fractionBits & ((uint64_t{1} << form.exponentBits) - 1);
  const int bias = (1 << (form.exponentBits - 1)) - 1;
  const double whole = biased == 0 ? 0 : std::ldexp(1.0, form.fractionBits);
  const double size = std::ldexp(static_cast<double>(mantissa) + whole,
                                 std::max(1, static_cast<int>(biased)) - bias - form.fractionBits);
  return bits >> (form.exponentBits + form.fractionBits) & 1 ? -size : size;
}

void store(std::byte* to, uint64_t bits, size_t bytes) noexcept { std::memcpy(to, &bits, bytes); }

uint64_t load(const std::byte* from, size_t bytes) noexcept {
  uint64_t bits = 0;
  std::memcpy(&bits, from, bytes);
  return bits;
}

bool isNan(uint64_t bits, const Form& form) noexcept {
  const uint64_t mantissa = mantissaOf(bits, form);
  return hasTopExponent(bits, form) && (hasInfinities(form) ? mantissa != 0 : mantissa == 7);
}

bool isFinite(uint64_t bits, const Form& form) noexcept {
  return !hasTopExponent(bits, form) || (!hasInfinities(form) && !isNan(bits, form));
}

long double largest(const Form& form) noexcept {
  if (!hasInfinities(form)) return 448;
  return std::ldexp(2 - std::ldexp(1.0L, -form.fractionBits), biasOf(form));
}

long double smallestNormal(const Form& form) noexcept { return std::ldexp(1.0L, 1 - biasOf(form)); }
long double smallest(const Form& form) noexcept { return std::ldexp(1.0L, 1 - biasOf(form) - form.fractionBits); }

}  // namespace tutti::faults

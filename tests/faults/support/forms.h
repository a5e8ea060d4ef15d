// The fields of each data type's elements, and numbers from and to them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tutti/tutti.h"

namespace tutti::faults {

struct Form {
  const char* name;
  uint8_t bytes;
  uint8_t exponentBits;  // 0: an integer
  uint8_t fractionBits;
  bool isSigned;
};

const Form& formOf(tuttiDataType_t type) noexcept;

// A number that the type holds exactly, as its bits; and back. Of infinities and NaN decode() makes numbers beyond all
// others.
uint64_t encode(double value, const Form& form) noexcept;
double decode(uint64_t bits, const Form& form) noexcept;

void store(std::byte* to, uint64_t bits, size_t bytes) noexcept;
uint64_t load(const std::byte* from, size_t bytes) noexcept;

// Of types with a fraction. f8e4m3 has no infinities, and one NaN of each sign.
bool isNan(uint64_t bits, const Form& form) noexcept;
bool isFinite(uint64_t bits, const Form& form) noexcept;
// Wider than any of the types, so that half of the smallest double is not zero.
long double largest(const Form& form) noexcept;
long double smallestNormal(const Form& form) noexcept;
long double smallest(const Form& form) noexcept;  // above zero

}  // namespace tutti::faults

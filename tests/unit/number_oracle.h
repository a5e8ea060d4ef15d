// What arithmetic on every data type must give, worked out independently of the kernels: values from the fields of a
// format, rounding by search among all of a format's values, integers in 128 bits.
#pragma once
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace tutti::oracle {

// Values are handed about as the bits of one element in the low bytes. Every NaN result is the one with all bits but
// the sign set.
double valueOf(DataType type, uint64_t bits);  // any floating-point type
uint64_t nearest(DataType type, float value);  // of a type that is narrower than float
bool isNan(DataType type, uint64_t bits);
bool isFloating(DataType type);

struct Operation {
  DataType type;
  ReduceOp op;
  uint32_t divisor;
  uint64_t factor;
  int scaledSource;
};
uint64_t combined(const Operation& operation, const std::vector<uint64_t>& sources);

}  // namespace tutti::oracle

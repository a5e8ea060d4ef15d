// Names, sizes and number formats of the C API's data types and operators.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tutti/tutti.h"

namespace tutti::perf {

// The operators that -o knows: those of the C API, and pre-mul-sum, whose number is only known once it was created.
enum class Operator { kSum, kProd, kMax, kMin, kAvg, kMulSum, kBitAnd, kBitOr, kBitXor };

const std::vector<tuttiDataType_t>& allTypes();
const std::vector<Operator>& allOperators();  // in nccl-tests' order, then tutti's own
// Whether tutti.h has the operator for the type. All others are left out of "all".
bool isDefined(Operator op, tuttiDataType_t type);

const char* nameOf(tuttiDataType_t type);
const char* nameOf(Operator op);
// Throw UsageError that lists the names. Of types also "fp16", "bf16", "fp8" (f8e4m3) and their like.
tuttiDataType_t typeByName(const std::string& name);
Operator operatorByName(const std::string& name);

size_t sizeOf(tuttiDataType_t type);
bool isFloat(tuttiDataType_t type);
bool isSigned(tuttiDataType_t type);  // integers only

// A binary floating-point format. `significant` counts the leading bit, whether stored or not.
struct FloatFormat {
  int exponentBits, significant, bias;
};
FloatFormat formatOf(tuttiDataType_t type);

// The bits of `value` in the format of `type`, rounded to nearest even. `value` must lie in the type's finite range.
uint64_t encode(tuttiDataType_t type, double value);
// The value of finite bits.
double decode(tuttiDataType_t type, uint64_t bits);

}  // namespace tutti::perf

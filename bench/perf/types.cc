#include "perf/types.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/data_type.h"
#include "perf/failure.h"

namespace tutti::perf {
namespace {

constexpr const char* kOperatorNames[] = {"sum", "prod", "max", "min", "avg", "mulsum", "band", "bor", "bxor"};

// Other frameworks' names.
struct Alias {
  const char* name;
  tuttiDataType_t type;
};
constexpr Alias kAliases[] = {{"fp16", tuttiFloat16},    {"float16", tuttiFloat16}, {"bf16", tuttiBfloat16},
                              {"fp32", tuttiFloat32},    {"float32", tuttiFloat32}, {"fp64", tuttiFloat64},
                              {"float64", tuttiFloat64}, {"fp8", tuttiFloat8e4m3},  {"e4m3", tuttiFloat8e4m3},
                              {"e5m2", tuttiFloat8e5m2}};

const DataTypeRow& rowOf(tuttiDataType_t type) { return kDataTypeRows[std::max(rowOfNumber(type), 0)]; }

template <class Value, class Values>
Value byName(const char* what, const std::string& name, const Values& values, const std::string& also = "") {
  std::vector<std::string> known;
  for (const Value value : values) {
    if (name == nameOf(value)) return value;
    known.push_back(nameOf(value));
  }
  throw UsageError(fmt::format("unknown {} '{}'; known are {} and all{}", what, name, fmt::join(known, ", "), also));
}

}  // namespace

const std::vector<tuttiDataType_t>& allTypes() {
  static const std::vector<tuttiDataType_t> types = [] {
    std::vector<tuttiDataType_t> all;
    for (const DataTypeRow& row : kDataTypeRows) all.push_back(static_cast<tuttiDataType_t>(numberOf(row.type)));
    return all;
  }();
  return types;
}

const std::vector<Operator>& allOperators() {
  static const std::vector<Operator> operators = {Operator::kSum,    Operator::kProd,  Operator::kMax,
                                                  Operator::kMin,    Operator::kAvg,   Operator::kMulSum,
                                                  Operator::kBitAnd, Operator::kBitOr, Operator::kBitXor};
  return operators;
}

const char* nameOf(tuttiDataType_t type) { return rowOf(type).name.data(); }
const char* nameOf(Operator op) { return kOperatorNames[static_cast<int>(op)]; }

tuttiDataType_t typeByName(const std::string& name) {
  for (const Alias& alias : kAliases)
    if (name == alias.name) return alias.type;
  std::vector<std::string> others;
  for (const Alias& alias : kAliases) others.push_back(fmt::format("{} ({})", alias.name, nameOf(alias.type)));
  return byName<tuttiDataType_t>("data type", name, allTypes(), fmt::format("; also {}", fmt::join(others, ", ")));
}
Operator operatorByName(const std::string& name) { return byName<Operator>("operator", name, allOperators()); }

bool isDefined(Operator op, tuttiDataType_t type) {
  if (type == tuttiBool) return op != Operator::kAvg && op != Operator::kMulSum;
  return op < Operator::kBitAnd || !isFloat(type);
}

size_t sizeOf(tuttiDataType_t type) { return rowOf(type).bytes; }
bool isFloat(tuttiDataType_t type) { return rowOf(type).isFloat(); }
bool isSigned(tuttiDataType_t type) { return !isFloat(type) && rowOf(type).isSigned; }

FloatFormat formatOf(tuttiDataType_t type) {
  const DataTypeRow& row = rowOf(type);
  return {row.exponentBits, row.mantissaBits + 1, row.bias()};
}

uint64_t encode(tuttiDataType_t type, double value) {
  if (type == tuttiFloat64) return std::bit_cast<uint64_t>(value);
  const FloatFormat format = formatOf(type);
  const int stored = format.significant - 1;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (format.exponentBits + stored) : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  // Count in units of the last place. A subnormal has the smallest exponent and no leading bit, so its count is its
  // code; a carry out of the significand lands in the exponent, where it belongs.
  const int lowest = 1 - format.bias;
  const int exponent = std::max(std::ilogb(magnitude), lowest);
  const auto units = static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, stored - exponent)));
  return sign | (units + (static_cast<uint64_t>(exponent - lowest) << stored));
}

double decode(tuttiDataType_t type, uint64_t bits) {
  if (type == tuttiFloat64) return std::bit_cast<double>(bits);
  const FloatFormat format = formatOf(type);
  const int stored = format.significant - 1;
  const uint64_t fraction = bits & ((uint64_t{1} << stored) - 1);
  const auto exponent = static_cast<int>((bits >> stored) & ((uint64_t{1} << format.exponentBits) - 1));
  const bool negative = (bits >> (stored + format.exponentBits)) & 1;
  const uint64_t units = exponent == 0 ? fraction : fraction + (uint64_t{1} << stored);
  const double magnitude = std::ldexp(static_cast<double>(units), std::max(exponent, 1) - format.bias - stored);
  return negative ? -magnitude : magnitude;
}

}  // namespace tutti::perf

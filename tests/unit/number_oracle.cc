#include "unit/number_oracle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace tutti::oracle {
namespace {

uint64_t maskOf(int bits) { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }
int bitsOf(DataType type) { return 8 * static_cast<int>(sizeOf(type)); }
uint64_t nanOf(DataType type) { return maskOf(bitsOf(type) - 1); }

// All finite values of a format that are not negative, in order: the index is the code.
const std::vector<double>& finiteValues(DataType type) {
  static std::array<std::vector<double>, kDataTypes> tables;
  std::vector<double>& table = tables[static_cast<size_t>(type)];
  for (uint64_t code = table.size(); table.empty() || code == table.size(); ++code) {
    const double value = valueOf(type, code);
    if (!std::isfinite(value)) break;
    table.push_back(value);
  }
  return table;
}

template <class T>
T foldFloating(const Operation& operation, const std::vector<T>& values, T factor) {
  auto value = [&](size_t i) {
    const bool scaled = operation.op == ReduceOp::kPreMulSum && static_cast<int>(i) == operation.scaledSource;
    if (!scaled) return values[i];
    const T product = values[i] * factor;  // a value of the type before it is added
    return sizeof(T) > sizeOf(operation.type)
               ? static_cast<T>(valueOf(operation.type, nearest(operation.type, product)))
               : product;
  };
  T result = value(0);
  for (size_t i = 1; i < values.size(); ++i) {
    const T next = value(i);
    switch (operation.op) {
      case ReduceOp::kProd:
        result = result * next;
        break;
      case ReduceOp::kMax:
        if (std::isnan(next) || next > result) result = next;
        break;
      case ReduceOp::kMin:
        if (std::isnan(next) || next < result) result = next;
        break;
      default:
        result = result + next;
    }
  }
  return operation.op == ReduceOp::kAvg ? result / static_cast<T>(operation.divisor) : result;
}

__extension__ using Wide = __int128;

Wide integerOf(DataType type, uint64_t bits) {
  const int width = bitsOf(type);
  const Wide value = static_cast<Wide>(bits & maskOf(width));
  return rowOf(type).isSigned && (bits >> (width - 1) & 1) ? value - (static_cast<Wide>(1) << width) : value;
}

uint64_t combinedIntegers(const Operation& operation, const std::vector<uint64_t>& sources) {
  auto wrap = [&](Wide value) { return integerOf(operation.type, static_cast<uint64_t>(value)); };
  const Wide factor = integerOf(operation.type, operation.factor);
  auto value = [&](size_t i) {
    const bool scaled = operation.op == ReduceOp::kPreMulSum && static_cast<int>(i) == operation.scaledSource;
    const Wide plain = integerOf(operation.type, sources[i]);
    return scaled
               ? wrap(static_cast<Wide>(static_cast<unsigned __int128>(plain) * static_cast<unsigned __int128>(factor)))
               : plain;
  };
  Wide result = value(0);
  for (size_t i = 1; i < sources.size(); ++i) {
    const Wide next = value(i);
    switch (operation.op) {
      case ReduceOp::kProd:
        result = wrap(static_cast<Wide>(static_cast<unsigned __int128>(result) * static_cast<unsigned __int128>(next)));
        break;
      case ReduceOp::kMax:
        result = std::max(result, next);
        break;
      case ReduceOp::kMin:
        result = std::min(result, next);
        break;
      default:
        result = wrap(result + next);
    }
  }
  if (operation.op == ReduceOp::kAvg) result /= operation.divisor;
  return static_cast<uint64_t>(result) & maskOf(bitsOf(operation.type));
}

// Bit for bit, by counting.
uint64_t combinedBits(const Operation& operation, const std::vector<uint64_t>& sources) {
  uint64_t result = 0;
  for (int bit = 0; bit < bitsOf(operation.type); ++bit) {
    size_t set = 0;
    for (const uint64_t source : sources) set += source >> bit & 1;
    const bool is = operation.op == ReduceOp::kBitAnd  ? set == sources.size()
                    : operation.op == ReduceOp::kBitOr ? set > 0
                                                       : set % 2 == 1;
    result |= uint64_t{is} << bit;
  }
  return result;
}

// Likewise: any byte but 0 is true.
uint64_t combinedTruths(const Operation& operation, const std::vector<uint64_t>& sources) {
  const auto truths = std::count_if(sources.begin(), sources.end(), [](uint64_t byte) { return (byte & 0xff) != 0; });
  switch (operation.op) {
    case ReduceOp::kProd:
    case ReduceOp::kMin:
    case ReduceOp::kBitAnd:
      return truths == static_cast<ptrdiff_t>(sources.size());
    case ReduceOp::kBitXor:
      return truths % 2;
    default:
      return truths > 0;
  }
}

template <class T, class Bits>
uint64_t combinedNative(const Operation& operation, const std::vector<uint64_t>& sources) {
  auto native = [](uint64_t bits) { return std::bit_cast<T>(static_cast<Bits>(bits)); };
  std::vector<T> values;
  for (uint64_t bits : sources) values.push_back(native(bits));
  const T result = foldFloating<T>(operation, values, native(operation.factor));
  return std::isnan(result) ? nanOf(operation.type) : std::bit_cast<Bits>(result);
}

uint64_t combinedNarrow(const Operation& operation, const std::vector<uint64_t>& sources) {
  std::vector<float> values;
  for (uint64_t bits : sources) values.push_back(static_cast<float>(valueOf(operation.type, bits)));
  const float factor = static_cast<float>(valueOf(operation.type, operation.factor));
  return nearest(operation.type, foldFloating<float>(operation, values, factor));
}

}  // namespace

bool isFloating(DataType type) { return rowOf(type).isFloat(); }

double valueOf(DataType type, uint64_t bits) {
  const DataTypeRow& layout = rowOf(type);
  const int exponent = static_cast<int>(bits >> layout.mantissaBits & maskOf(layout.exponentBits));
  const auto mantissa = static_cast<double>(bits & maskOf(layout.mantissaBits));
  const int bias = static_cast<int>(maskOf(layout.exponentBits - 1));
  const bool negative = bits >> (layout.exponentBits + layout.mantissaBits) & 1;
  const bool top = exponent == static_cast<int>(maskOf(layout.exponentBits));
  double value = exponent == 0 ? std::ldexp(mantissa, 1 - bias - layout.mantissaBits)
                               : std::ldexp(mantissa + std::ldexp(1.0, layout.mantissaBits),
                                            exponent - bias - layout.mantissaBits);
  if (top && layout.hasInfinity) value = mantissa == 0 ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  if (top && !layout.hasInfinity && mantissa == static_cast<double>(maskOf(layout.mantissaBits)))
    value = std::numeric_limits<double>::quiet_NaN();
  return negative ? -value : value;
}

bool isNan(DataType type, uint64_t bits) { return isFloating(type) && std::isnan(valueOf(type, bits)); }

uint64_t nearest(DataType type, float value) {
  if (std::isnan(value)) return nanOf(type);
  const std::vector<double>& table = finiteValues(type);
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (bitsOf(type) - 1) : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  const uint64_t above = static_cast<uint64_t>(std::lower_bound(table.begin(), table.end(), magnitude) - table.begin());
  if (above == 0) return sign;
  const uint64_t below = above - 1;
  // Past the largest value stands the one that the next exponent would begin with; codes of both are consecutive.
  const double next = above < table.size() ? table[above] : 2 * table[below] - table[below - 1];
  const double toBelow = magnitude - table[below], toAbove = next - magnitude;
  const bool up = toAbove < toBelow || (toAbove == toBelow && above % 2 == 0);
  const uint64_t code = up ? above : below;
  return sign | (rowOf(type).hasInfinity ? code : std::min<uint64_t>(code, table.size() - 1));
}

uint64_t combined(const Operation& operation, const std::vector<uint64_t>& sources) {
  const bool scaled = operation.op == ReduceOp::kPreMulSum && operation.scaledSource >= 0;
  const bool divided = operation.op == ReduceOp::kAvg && operation.divisor > 1;
  if (sources.size() == 1 && !scaled && !divided) return sources[0];
  if (operation.type == DataType::kBool) return combinedTruths(operation, sources);
  if (operation.op >= ReduceOp::kBitAnd) return combinedBits(operation, sources);
  if (!isFloating(operation.type)) return combinedIntegers(operation, sources);
  if (operation.type == DataType::kFloat32) return combinedNative<float, uint32_t>(operation, sources);
  if (operation.type == DataType::kFloat64) return combinedNative<double, uint64_t>(operation, sources);
  return combinedNarrow(operation, sources);
}

}  // namespace tutti::oracle

// A data type is a row here, its arithmetic (kernels/element.h), and its number in tutti.h. docs/extending.md shows how
// to add one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/enum_table.h"

namespace tutti {

// NCCL's come first, with its numbers; then tutti's own. The C API's numbers of these begin at kFirstOwnNumber.
enum class DataType : uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8e4m3,
  kFloat8e5m2,
  kBool,
  kInt16,
  kUint16
};
inline constexpr int kNcclTypes = 12;
inline constexpr int kFirstOwnNumber = 64;  // of types, and of operators

struct DataTypeRow {
  DataType type;
  std::string_view name;  // of one word, nccl-tests'; a literal
  uint8_t bytes;
  bool isSigned;
  // Of the binary floating-point types: bits of the exponent and of the mantissa as it is stored. Of integers none.
  uint8_t exponentBits = 0, mantissaBits = 0;
  // The largest exponent is that of infinities and of all that is no number; else of one such value of each sign.
  bool hasInfinity = false;

  constexpr bool isFloat() const noexcept { return exponentBits != 0; }
  constexpr int bias() const noexcept { return (1 << (exponentBits - 1)) - 1; }  // of the exponent
};

inline constexpr DataTypeRow kDataTypeRows[] = {
    {DataType::kInt8, "int8", 1, true},
    {DataType::kUint8, "uint8", 1, false},
    {DataType::kInt32, "int32", 4, true},
    {DataType::kUint32, "uint32", 4, false},
    {DataType::kInt64, "int64", 8, true},
    {DataType::kUint64, "uint64", 8, false},
    {DataType::kFloat16, "half", 2, true, 5, 10, true},
    {DataType::kFloat32, "float", 4, true, 8, 23, true},
    {DataType::kFloat64, "double", 8, true, 11, 52, true},
    {DataType::kBfloat16, "bfloat16", 2, true, 8, 7, true},
    {DataType::kFloat8e4m3, "f8e4m3", 1, true, 4, 3, false},
    {DataType::kFloat8e5m2, "f8e5m2", 1, true, 5, 2, true},
    {DataType::kBool, "bool", 1, false},
    {DataType::kInt16, "int16", 2, true},
    {DataType::kUint16, "uint16", 2, false},
};
inline constexpr int kDataTypes = static_cast<int>(std::size(kDataTypeRows));
inline constexpr size_t kLargestElement = 8;
static_assert(areInOrder(kDataTypeRows, &DataTypeRow::type));
static_assert(kDataTypes <= 16, "a slot's fingerprint has 4 bits for the type, and so has packedSizes()");

constexpr const DataTypeRow& rowOf(DataType type) noexcept { return kDataTypeRows[static_cast<size_t>(type)]; }
constexpr std::string_view nameOf(DataType type) noexcept { return rowOf(type).name; }

// The C API's number of a type; and the place among the rows of a type with that number, -1 where none has it.
constexpr int numberOf(DataType type) noexcept {
  const int row = static_cast<int>(type);
  return row < kNcclTypes ? row : row - kNcclTypes + kFirstOwnNumber;
}
constexpr int rowOfNumber(int number) noexcept {
  if (number >= 0 && number < kNcclTypes) return number;
  const bool isOwn = number >= kFirstOwnNumber && number - kFirstOwnNumber < kDataTypes - kNcclTypes;
  return isOwn ? number - kFirstOwnNumber + kNcclTypes : -1;
}

// Four bits each, the first type's lowest.
constexpr uint64_t packedSizes() noexcept {
  uint64_t sizes = 0;
  for (const DataTypeRow& row : kDataTypeRows) sizes |= uint64_t{row.bytes} << (4 * static_cast<int>(row.type));
  return sizes;
}

// A shift, not a table in memory: it is on the way of every call, and of every step on a GPU.
constexpr size_t sizeOf(DataType type) noexcept {
  constexpr uint64_t kSizes = packedSizes();
  return kSizes >> (4 * static_cast<int>(type)) & 15;
}

}  // namespace tutti

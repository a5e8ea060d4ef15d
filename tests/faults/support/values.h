// What ranks put into their buffers, and what must come out: computed element by element, on its own, without a line
// of the library. Integers take any bits. Numbers with a fraction take values whose results are exact in their type,
// whatever the order of the additions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "tutti/tutti.h"

namespace tutti::faults {

inline constexpr int kPreMulSum = tuttiNumOps;  // stands for an operator made by tuttiRedOpCreatePreMulSum

// Every type, and every operator of tuttiRedOp_t besides kPreMulSum.
inline constexpr tuttiDataType_t kTypes[] = {
    tuttiInt8,    tuttiUint8,    tuttiInt32,      tuttiUint32,     tuttiInt64, tuttiUint64, tuttiFloat16, tuttiFloat32,
    tuttiFloat64, tuttiBfloat16, tuttiFloat8e4m3, tuttiFloat8e5m2, tuttiBool,  tuttiInt16,  tuttiUint16};
inline constexpr int kOps[] = {tuttiSum,   tuttiProd,   tuttiMax,   tuttiMin,   tuttiAvg,
                               kPreMulSum, tuttiBitAnd, tuttiBitOr, tuttiBitXor};
// Whether the type has it: all others are refused.
bool isDefined(int op, tuttiDataType_t type) noexcept;
const char* nameOfOp(int op) noexcept;
// One that the type has, of those drawn with below(limit).
template <class Below>
int drawOp(tuttiDataType_t type, Below below) {
  for (;;)
    if (const int op = kOps[below(std::size(kOps))]; isDefined(op, type)) return op;
}

size_t sizeOf(tuttiDataType_t type) noexcept;
const char* nameOf(tuttiDataType_t type) noexcept;
bool isFloat(tuttiDataType_t type) noexcept;

// Well mixed bits of up to three numbers.
uint64_t mix(uint64_t a, uint64_t b = 0, uint64_t c = 0) noexcept;

// Any bits, for what is only moved: `bytes` bytes of the endless row that `stream` names.
void fillRaw(std::byte* to, uint64_t stream, size_t bytes) noexcept;

// One reduction over `ranks` ranks: each rank's contribution at an index, and their combination.
class Reduction {
 public:
  // `op` of tuttiRedOp_t or kPreMulSum.
  Reduction(tuttiDataType_t type, int op, int ranks, uint64_t salt) noexcept;
  void contribute(std::byte* to, int rank, size_t first, size_t count) const noexcept;
  void combine(std::byte* to, size_t first, size_t count) const noexcept;
  // The scalar of a pre-multiplied sum, in the data type; at most 8 bytes are written.
  void factor(std::byte* to, int rank) const noexcept;

 private:
  double number(int rank, size_t index) const noexcept;     // of types with a fraction
  uint64_t integer(int rank, size_t index) const noexcept;  // of integers
  double factorNumber(int rank) const noexcept;
  uint64_t factorInteger(int rank) const noexcept;
  double combineNumbers(size_t index) const noexcept;
  uint64_t combineIntegers(size_t index) const noexcept;
  uint64_t combineTruths(size_t index) const noexcept;

  tuttiDataType_t type_;
  int op_, ranks_;
  uint64_t salt_;
};

// An element as text: "7", or "0x3c00 (1)".
struct Spelled {
  char text[48];
};
Spelled spell(const std::byte* element, tuttiDataType_t type) noexcept;
// Equal bits, or both zero in a type that has two of them.
bool sameElement(const std::byte* a, const std::byte* b, tuttiDataType_t type) noexcept;

}  // namespace tutti::faults

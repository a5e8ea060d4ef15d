// Reductions of numbers whose results must be rounded: what ranks contribute, and how far from the exact result a
// combination of that may be, whatever the order, if each operation rounds as tutti.h says.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "tutti/tutti.h"

namespace tutti::faults {

class Rounding {
 public:
  // `type` has a fraction; `op` of tuttiRedOp_t or kPreMulSum. By an even salt contributions are near one, so that
  // every bit of every rank counts; by an odd one they are any bits, NaN and infinities too, or, where the salt divided
  // by four leaves three, about as small as the type can say.
  Rounding(tuttiDataType_t type, int op, int ranks, uint64_t salt) noexcept;
  void contribute(std::byte* to, int rank, size_t first, size_t count) const noexcept;
  // The scalar of a pre-multiplied sum, in the data type.
  void factor(std::byte* to, int rank) const noexcept;
  // The first element that roundings do not explain, in words; empty when there is none. A NaN among the contributions
  // must have come out, and so must a maximum and a minimum, exactly. Where a partial result may have left the type's
  // range, anything goes.
  std::string judge(const std::byte* got, size_t first, size_t count) const;

 private:
  struct Exact {
    bool hasNan = false, known = false;
    long double value = 0, bound = 0;
  };
  uint64_t bits(int rank, size_t index) const noexcept;
  uint64_t near(uint64_t drawn) const noexcept;
  uint64_t small(uint64_t drawn) const noexcept;
  uint64_t factorBits(int rank) const noexcept;
  uint64_t extreme(size_t index) const noexcept;
  Exact exact(size_t index) const noexcept;
  Exact exactSum(size_t index) const noexcept;
  Exact exactProduct(size_t index) const noexcept;
  long double growth(int roundings) const noexcept;
  bool suits(uint64_t got, size_t index) const noexcept;

  tuttiDataType_t type_;
  int op_, ranks_;
  uint64_t salt_;
  long double logOfRounding_;  // of the factor by which one can enlarge a number
};

}  // namespace tutti::faults

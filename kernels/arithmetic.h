// What a reduction computes, apart from where: the same for a host lane and a CUDA block.
#pragma once
#include <cstdint>

#include "base/types.h"

namespace tutti::kernels {

struct Arithmetic {
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  uint32_t divisor = 1;  // kAvg only: the final value is divided by it; 1 leaves it alone
  // kPreMulSum only: the factor, a value of `type`, in the low bytes. It multiplies one of the sources;
  // the product is rounded to the type before it is added.
  uint64_t factor = 0;
};

}  // namespace tutti::kernels

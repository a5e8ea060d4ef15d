// The elements of the hot path: where a GPU has instructions for a conversion, they are used; their bits are those of
// kernels/convert.h (both round to nearest even, and give the same NaN).
#pragma once
#include "kernels/cuda/platform.cuh"
#include "kernels/element.h"
#ifndef TUTTI_EMULATION
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace tutti::cuda {

// A type for which the GPU has none keeps its arithmetic as it is.
template <DataType kType>
struct HotElement : kernels::ElementOf<kType>::Element {};

#ifndef TUTTI_EMULATION

// The adder itself gives the one NaN of results.
template <>
struct HotElement<DataType::kFloat32> {
  using Storage = float;
  using Accumulator = float;
  static __device__ float load(float stored) { return stored; }
  static __device__ float store(float value) { return value; }
};

template <>
struct HotElement<DataType::kFloat16> {
  using Storage = uint16_t;
  using Accumulator = float;
  static __device__ float load(uint16_t stored) { return __half2float(__ushort_as_half(stored)); }
  static __device__ uint16_t store(float value) { return __half_as_ushort(__float2half_rn(value)); }
};

template <>
struct HotElement<DataType::kBfloat16> {
  using Storage = uint16_t;
  using Accumulator = float;
  static __device__ float load(uint16_t stored) { return __uint_as_float(static_cast<uint32_t>(stored) << 16); }
  static __device__ uint16_t store(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }
};

#endif

}  // namespace tutti::cuda

// What an operation is, for those who wait for it, for profilers and for error texts.
#pragma once
#include <ATen/core/Tensor.h>

#include <chrono>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace tutti_torch {

using std::chrono::milliseconds;
using Tensors = std::vector<at::Tensor>;

constexpr milliseconds kLongest = std::chrono::hours(24 * 365);  // clocks end somewhere

// Reduce-scatters of several tensors at once have a type of their own in newer torches.
template <class Type>
constexpr Type coalescedReduceScatter() {
  if constexpr (requires { Type::REDUCE_SCATTER_TENSOR_COALESCED; })
    return Type::REDUCE_SCATTER_TENSOR_COALESCED;
  else
    return Type::_REDUCE_SCATTER_BASE;
}
constexpr c10d::OpType kCoalescedReduceScatter = coalescedReduceScatter<c10d::OpType>();

struct About {
  c10d::OpType type;
  const char* title;        // "tutti:all_reduce"
  Tensors inputs, outputs;  // kept until the operation has ended
  milliseconds timeout;
  bool async = true;  // the caller does not wait at once
  uint64_t sequence = 0;
};

}  // namespace tutti_torch

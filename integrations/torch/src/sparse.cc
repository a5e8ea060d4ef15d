#include "sparse.h"

#include <ATen/ATen.h>

namespace tutti_torch {
namespace {

// Of all ranks: how many values each has.
Counts valuesOfAll(Calls& calls, int64_t own, int ranks, c10::Device device) {
  const auto options = at::TensorOptions(at::kLong).device(device);
  const at::Tensor mine = at::full({1}, own, options), all = at::empty({ranks}, options);
  calls.allGather(mine, all);
  calls.complete();
  const at::Tensor here = all.cpu();
  return {here.data_ptr<int64_t>(), here.data_ptr<int64_t>() + ranks};
}

// A rank's rows are one after the other.
at::Tensor gatherRows(Calls& calls, const at::Tensor& rows, const Counts& rowsOf) {
  int64_t all = 0, width = 1;
  for (const int64_t count : rowsOf) all += count;
  for (const int64_t extent : rows.sizes().slice(1)) width *= extent;
  auto sizes = rows.sizes().vec();
  sizes[0] = all;
  const at::Tensor out = at::empty(sizes, rows.options());
  Counts counts;
  for (const int64_t count : rowsOf) counts.push_back(count * width);
  calls.allGather(rows, out, counts);
  return out;
}

}  // namespace

void sparseAllReduce(Calls& calls, const at::Tensor& tensor, int ranks) {
  const at::Tensor own = tensor.coalesce();
  const Counts counts = valuesOfAll(calls, own._nnz(), ranks, tensor.device());
  const at::Tensor indices = gatherRows(calls, own._indices().t().contiguous(), counts);
  const at::Tensor values = gatherRows(calls, own._values().contiguous(), counts);
  calls.complete();
  const at::Tensor sum =
      at::_sparse_coo_tensor_unsafe(indices.t().contiguous(), values, tensor.sizes(), tensor.options()).coalesce();
  at::Tensor result = tensor;
  result.copy_(sum);
  result._coalesced_(true);
}

}  // namespace tutti_torch

#include "sparse.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace tutti_torch {
namespace {

// What a rank tells of its tensor: values, sparse dimensions, dimensions, and the size of each.
constexpr int64_t kMostDimensions = 64;  // of any tensor of PyTorch's
constexpr int64_t kShape = 3 + kMostDimensions;

at::Tensor shapeOf(const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.dim() <= kMostDimensions, "tutti: a sparse tensor has ", tensor.dim(), " dimensions");
  const at::Tensor shape = at::zeros({kShape}, at::kLong);
  auto* const at = shape.data_ptr<int64_t>();
  at[0] = tensor._nnz(), at[1] = tensor.sparse_dim(), at[2] = tensor.dim();
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), at + 3);
  return shape;
}

std::string describe(const int64_t* shape) {
  return c10::str("[", c10::Join(", ", c10::IntArrayRef(shape + 3, static_cast<size_t>(shape[2]))), "] with ", shape[1],
                  " sparse dimensions");
}

// How many values each rank has. Throws on every rank alike where their tensors cannot be added.
Counts valuesOfAll(Calls& calls, const at::Tensor& own, int ranks) {
  const at::Tensor mine = shapeOf(own).to(own.device()), all = at::empty({ranks, kShape}, mine.options());
  calls.allGather(mine, all);
  calls.complete();
  const at::Tensor here = all.cpu();
  const auto* const first = here.data_ptr<int64_t>();
  Counts values;
  for (int rank = 0; rank < ranks; ++rank) {
    const int64_t* const shape = first + rank * kShape;
    TORCH_CHECK_VALUE(std::equal(shape + 1, shape + kShape, first + 1),
                      "tutti: sparse all_reduce: the tensors of all ranks are of one size; rank 0 has ",
                      describe(first), ", rank ", rank, " has ", describe(shape));
    values.push_back(shape[0]);
  }
  return values;
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
  const Counts counts = valuesOfAll(calls, own, ranks);
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

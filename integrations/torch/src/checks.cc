#include "checks.h"

#include <ATen/ATen.h>

namespace tutti_torch {

std::optional<c10::Device> gpuOf(const About& about) {
  std::optional<c10::Device> all;
  for (const Tensors* const list : {&about.inputs, &about.outputs})
    for (const auto& tensor : *list) {
      const c10::Device device = tensor.device();
      TORCH_CHECK_VALUE(device.is_cpu() || device.is_cuda(), about.title,
                        ": tensors may be on the CPU or on a CUDA GPU; one of them is on ", device);
      TORCH_CHECK_VALUE(!all || *all == device, about.title,
                        ": all tensors of a call are on one device; here one is on ", *all, ", another on ", device);
      all = device;
    }
  return all && all->is_cuda() ? all : std::nullopt;
}

const at::Tensor& only(const char* call, const Tensors& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "tutti: ", call, " takes one tensor, and got ", tensors.size());
  return tensors.front();
}

const Tensors& onlyList(const char* call, const TensorLists& lists, int size) {
  TORCH_CHECK_VALUE(lists.size() == 1, "tutti: ", call, " takes one list of tensors, and got ", lists.size());
  TORCH_CHECK_VALUE(static_cast<int>(lists.front().size()) == size, "tutti: ", call, ": a group of ", size,
                    " needs a list of as many tensors, and got ", lists.front().size());
  return lists.front();
}

void checkStrided(const char* call, const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "tutti: ", call, ": the tensor must be dense");
}

void checkTypes(const char* call, const at::Tensor& one, const at::Tensor& other) {
  TORCH_CHECK_VALUE(one.scalar_type() == other.scalar_type(), "tutti: ", call,
                    ": the types differ: ", one.scalar_type(), " and ", other.scalar_type());
}

void checkParts(const char* call, const at::Tensor& whole, const at::Tensor& part, int size) {
  checkTypes(call, whole, part);
  TORCH_CHECK_VALUE(whole.numel() == part.numel() * size, "tutti: ", call, ": ", whole.numel(), " elements are not ",
                    size, " times ", part.numel());
}

void checkSame(const char* call, const Tensors& outs, const Tensors& ins) {
  TORCH_CHECK_VALUE(outs.size() == ins.size() && !ins.empty(), "tutti: ", call, ": ", ins.size(),
                    " tensors go in, and ", outs.size(), " come out");
}

Counts splitsOf(const char* call, const std::vector<int64_t>& rows, const at::Tensor& tensor, int size) {
  const int64_t all = tensor.dim() == 0 ? 1 : tensor.size(0);
  if (rows.empty()) {
    TORCH_CHECK_VALUE(all % size == 0, "tutti: ", call, ": ", all, " rows cannot be divided among ", size, " ranks");
    return Counts(static_cast<size_t>(size), tensor.numel() / size);
  }
  TORCH_CHECK_VALUE(static_cast<int>(rows.size()) == size, "tutti: ", call, ": ", rows.size(), " splits for ", size,
                    " ranks");
  Counts counts;
  int64_t sum = 0;
  for (const int64_t row : rows) {
    TORCH_CHECK_VALUE(row >= 0, "tutti: ", call, ": a split of ", row, " rows");
    counts.push_back(all == 0 ? 0 : row * (tensor.numel() / all));
    sum += row;
  }
  TORCH_CHECK_VALUE(sum == all, "tutti: ", call, ": the splits are of ", sum, " rows, the tensor has ", all);
  return counts;
}

}  // namespace tutti_torch

#include "dense.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace tutti_torch {
namespace {

bool isPlain(const at::Tensor& tensor) { return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg(); }

at::Tensor standIn(const at::Tensor& tensor, Use use) {
  if (use == Use::kWrite) return at::empty(tensor.sizes(), tensor.options().memory_format(c10::nullopt));
  return tensor.resolve_conj().resolve_neg().contiguous();
}

bool follow(const std::vector<at::Tensor>& tensors) {
  int64_t next = tensors.front().storage_offset();
  return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
    const bool fits = isPlain(tensor) && tensor.storage().is_alias_of(tensors.front().storage()) &&
                      tensor.storage_offset() == next && tensor.scalar_type() == tensors.front().scalar_type();
    next += tensor.numel();
    return fits;
  });
}

}  // namespace

Dense::Dense(const at::Tensor& tensor, Use use)
    : tensor_(tensor), memory_(isPlain(tensor) ? tensor : standIn(tensor, use)) {}

void Dense::writeBack() const {
  if (!memory_.is_same(tensor_)) tensor_.copy_(memory_);
}

DenseList::DenseList(const std::vector<at::Tensor>& tensors, Use use) : tensors_(tensors) {
  int64_t all = 0;
  for (const auto& tensor : tensors_) counts_.push_back(tensor.numel()), all += tensor.numel();
  copied_ = !follow(tensors_);
  if (!copied_) {
    memory_ = tensors_.front().as_strided({all}, {1});
    return;
  }
  memory_ = at::empty({all}, tensors_.front().options().memory_format(c10::nullopt));
  if (use == Use::kWrite) return;
  int64_t at = 0;
  for (const auto& tensor : tensors_) {
    memory_.narrow(0, at, tensor.numel()).view(tensor.sizes()).copy_(tensor);
    at += tensor.numel();
  }
}

void DenseList::writeBack() const {
  if (!copied_) return;
  int64_t at = 0;
  for (const auto& tensor : tensors_) {
    tensor.copy_(memory_.narrow(0, at, tensor.numel()).view(tensor.sizes()));
    at += tensor.numel();
  }
}

bool DenseList::isEven() const {
  return std::all_of(counts_.begin(), counts_.end(), [this](int64_t count) { return count == counts_.front(); });
}

}  // namespace tutti_torch

// Tensors as calls see them: memory without gaps.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace tutti_torch {

enum class Use { kRead, kWrite, kBoth };

// One tensor. Where its elements do not lie one after the other, a copy stands in for it.
class Dense {
 public:
  Dense(const at::Tensor& tensor, Use use);
  const at::Tensor& memory() const { return memory_; }
  void* data() const { return memory_.data_ptr(); }
  // What was written to the copy, if there is one, goes to the tensor.
  void writeBack() const;

 private:
  at::Tensor tensor_, memory_;
};

// Several as one, one after the other. No copy where they lie so already, as parts of one tensor do.
class DenseList {
 public:
  DenseList(const std::vector<at::Tensor>& tensors, Use use);
  const at::Tensor& memory() const { return memory_; }
  void* data() const { return memory_.data_ptr(); }
  void writeBack() const;
  const std::vector<int64_t>& counts() const { return counts_; }
  bool isEven() const;

 private:
  std::vector<at::Tensor> tensors_;
  std::vector<int64_t> counts_;
  at::Tensor memory_;
  bool copied_ = false;
};

}  // namespace tutti_torch

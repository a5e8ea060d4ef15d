// What must hold of the tensors of a call. Where it does not, each throws ValueError, which names the call.
#pragma once
#include <optional>
#include <vector>

#include "calls.h"
#include "work.h"

namespace tutti_torch {

using TensorLists = std::vector<Tensors>;

// The one place that says on which devices tensors may be: the GPU on which all of them are, or none, for host memory.
std::optional<c10::Device> gpuOf(const About& about);
const at::Tensor& only(const char* call, const Tensors& tensors);
// One list, with a tensor a rank.
const Tensors& onlyList(const char* call, const TensorLists& lists, int size);
void checkStrided(const char* call, const at::Tensor& tensor);
void checkTypes(const char* call, const at::Tensor& one, const at::Tensor& other);
// The whole is `size` times the part.
void checkParts(const char* call, const at::Tensor& whole, const at::Tensor& part, int size);
void checkSame(const char* call, const Tensors& outs, const Tensors& ins);
// Rows of the first dimension for each rank, as elements; without `rows` as many for each.
Counts splitsOf(const char* call, const std::vector<int64_t>& rows, const at::Tensor& tensor, int size);

}  // namespace tutti_torch

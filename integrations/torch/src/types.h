// What PyTorch's data types and operators are in tutti's terms.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <tutti/tutti.h>

#include <torch/csrc/distributed/c10d/Types.hpp>

namespace tutti_torch {

// How elements of a type travel: each as `perElement` of tutti's.
struct Format {
  tuttiDataType_t type;
  size_t perElement;
};

// Of what is only moved: any type there is, if need be as bytes.
Format formatToMove(c10::ScalarType type);
// Of what is reduced. Throws ValueError for a type or an operator that cannot be.
Format formatToReduce(c10::ScalarType type, c10d::ReduceOp::RedOpType op);

// An operator for the calls of one operation on one communicator, which has to outlive it.
class Operator {
 public:
  Operator(const c10d::ReduceOp& op, c10::ScalarType type);
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  const Format& format() const { return format_; }
  // Makes a pre-multiplied sum on that communicator. Throws DistBackendError where it refuses.
  tuttiRedOp_t on(tuttiComm_t comm);

 private:
  c10d::ReduceOp::RedOpType op_;
  Format format_;
  at::Tensor factor_;  // of a pre-multiplied sum, one element of the type that is reduced
  tuttiComm_t comm_ = nullptr;
  tuttiRedOp_t made_ = tuttiSum;
};

}  // namespace tutti_torch

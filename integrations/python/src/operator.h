// Operators of reductions: by name, or made for one communicator.
#pragma once
#include <nanobind/nanobind.h>

#include "communicator.h"

namespace tutti::python {

// Multiplies this rank's input by a factor, then adds. It keeps its communicator; after that one's end it is nothing.
class Operator {
 public:
  // Raises tutti.InvalidArgument for what is not one real number, or none that the type holds: integers hold no 0.5.
  Operator(Communicator& comm, nanobind::handle factor, tuttiDataType_t type);
  tuttiRedOp_t native() const noexcept { return op_; }

 private:
  tuttiRedOp_t op_{};
};

// Of "sum", "prod", "min", "max", "avg", "band", "bor", "bxor", or an Operator. Raises tutti.InvalidArgument.
tuttiRedOp_t operatorOf(nanobind::handle op);

}  // namespace tutti::python

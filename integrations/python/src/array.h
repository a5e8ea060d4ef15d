// What a Python program hands over as a buffer: numpy arrays, whatever speaks DLPack or the buffer protocol. Nothing is
// copied.
#pragma once
#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>
#include <string>

#include "tutti/tutti.h"

namespace tutti::python {

struct Array {
  void* data = nullptr;
  size_t count = 0;  // elements
  tuttiDataType_t type = tuttiUint8;
  size_t elementBytes = 1;
  nanobind::object keeper;  // whoever has it keeps the memory where it is

  size_t bytes() const noexcept { return count * elementBytes; }
};

// Raises tutti.InvalidArgument, which names the argument: for what is no array (a scalar of numpy is none), masked, in
// another memory than the host's, not C-contiguous, a negated view, of a type that the library does not have, or, where
// it is to be written, read-only.
Array readable(nanobind::handle object, const char* argument);
Array writable(nanobind::handle object, const char* argument);

// "float32", numpy's dtype object or class; "bfloat16" and the fp8 types by ml_dtypes' names. Raises
// tutti.InvalidArgument.
tuttiDataType_t typeNamed(nanobind::handle dtype);
const char* nameOf(tuttiDataType_t type);

}  // namespace tutti::python

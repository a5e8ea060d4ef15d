// Results of the library as Python's exceptions.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "tutti/tutti.h"

namespace tutti::python {

// Raises the subclass of tutti.Error that belongs to the code (tutti/_errors.py). With the GIL.
[[noreturn]] void raise(tuttiResult_t code, const std::string& text);
// The library's text: the communicator's if it has one, else the calling thread's. Right after the call that failed, on
// its thread. Needs no GIL.
std::string textOf(tuttiResult_t result, tuttiComm_t comm = nullptr);
void check(tuttiResult_t result, tuttiComm_t comm = nullptr);

}  // namespace tutti::python

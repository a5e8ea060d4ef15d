// What tutti says of a failure, as the exceptions of PyTorch.
#pragma once
#include <c10/util/Exception.h>
#include <tutti/tutti.h>

#include <exception>
#include <string>

namespace tutti_torch {

// Throws what Python sees as torch.distributed.DistBackendError, with tutti's text of the calling thread.
void check(tuttiResult_t result);

[[noreturn]] void fail(const std::string& text);
std::exception_ptr failure(const std::string& text);
// The text of one.
std::string textOf(const std::exception_ptr& error);

}  // namespace tutti_torch

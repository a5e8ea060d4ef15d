// Waiting at a Store for other ranks.
#pragma once
#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tutti_torch {

using std::chrono::milliseconds;

// Why to wait no longer, or null. Any thread, and often.
using Stopped = std::function<std::exception_ptr()>;

// Waits until all are there; false: the time is over. Throws what `stopped` tells, within moments, and what is wrong
// with the Store.
bool awaitKeys(c10d::Store& store, const std::vector<std::string>& keys, milliseconds timeout, const Stopped& stopped);

}  // namespace tutti_torch

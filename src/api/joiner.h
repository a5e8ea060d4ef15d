// Joining in the background, for tuttiConfig_t::nonBlocking: the handle exists at once, its communicator comes later.
#pragma once
#include <functional>
#include <memory>

#include "api/handle.h"

namespace tutti::api {

// Makes the communicator; asks `cancelled` now and then, and throws Error.
using Join = std::function<std::shared_ptr<comm::Communicator>(const comm::Communicator::Cancelled& cancelled)>;

// A handle whose communicator `join` makes on a thread of its own, which ends with the join, or soon after
// tuttiCommAbort, and at the latest when the process does. Where `join` is looking up a host's name, each waits until
// the system's resolver is done. Throws Error when no thread can be had.
tuttiComm_t joinInBackground(int rank, int size, Join join);

}  // namespace tutti::api

// Calls on GPUs: put into as few launches as their order allows, and queued on their streams.
#pragma once
#include <memory>

#include "team/executor.h"

namespace tutti::gpu {

// The executor of a communicator on GPUs. Collective over the team; blocks, at most for config.joinTimeout. Throws
// Error.
std::unique_ptr<comm::Executor> makeGpuExecutor(comm::Team& team);

}  // namespace tutti::gpu

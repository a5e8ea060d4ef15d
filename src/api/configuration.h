// What a caller's tuttiConfig_t says.
#pragma once
#include "team/config.h"
#include "tutti/tutti.h"

namespace tutti::api {

// `config` with what the caller's struct says, but for what the environment says: that stays, and what it won over is
// noted in `overridden`. `given` may be null. Throws Error(kInvalidArgument), which names the field and the call.
comm::Config resolve(const tuttiConfig_t* given, comm::Config config, const char* call);

// Logs what the environment won over: as information, and on rank 0 with a warning for what the program may rely on.
// What it won over for the `parent` was told when that was made; null: there is none.
void tellOverridden(const comm::Config& config, int rank, const comm::Config* parent = nullptr);

}  // namespace tutti::api

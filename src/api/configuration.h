// What a caller's tuttiConfig_t says.
#pragma once
#include "comm/config.h"
#include "tutti/tutti.h"

namespace tutti::api {

// `config`, and over it what the caller's struct says; `given` may be null. Throws Error(kInvalidArgument), which names
// the field and the call.
comm::Config resolve(const tuttiConfig_t* given, comm::Config config, const char* call);

}  // namespace tutti::api

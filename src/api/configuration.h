// What a caller's tuttiConfig_t says, and tuttiCallConfig_t.
#pragma once
#include <chrono>

#include "team/call.h"
#include "team/config.h"
#include "tutti/tutti.h"

namespace tutti::api {

// `config` with what the caller's struct says, but for what the environment says: that stays, and what it won over is
// noted in `overridden`. `given` may be null. Throws Error(kInvalidArgument), which names the field and the call.
comm::Config resolve(const tuttiConfig_t* given, comm::Config config, const char* call);

// What a caller's tuttiCallConfig_t says.
struct CallOptions {
  comm::PlanWish wish;
  uint64_t tag = 0;
  bool persistent = false;
  std::chrono::milliseconds timeout{0};  // 0: the communicator's
  tuttiRequest_t* request = nullptr;
  std::string overridden;      // what the environment has won over, in words
  std::string unreproducible;  // of that, what a program may rely on
};

// Its `request` is NULL from here on, whatever becomes of the call. A struct that resolve() does not believe stays.
void clearRequest(const tuttiCallConfig_t& given) noexcept;
// For a call on a communicator with this configuration. Throws Error(kInvalidArgument), as above.
CallOptions resolve(const tuttiCallConfig_t& given, const comm::Config& config, Collective collective,
                    const char* call);

// Logs what the environment won over: as information, and on rank 0 with a warning for what the program may rely on.
// What it won over for the `parent` was told when that was made; null: there is none.
void tellOverridden(const comm::Config& config, int rank, const comm::Config* parent = nullptr);

}  // namespace tutti::api

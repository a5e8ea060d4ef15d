// Why a communicator stopped, as every rank is told it.
#pragma once
#include <cstdint>
#include <string>

#include "base/error.h"

namespace tutti::control {

// Why a communicator stopped.
enum class Stop : uint8_t {
  kDeath,    // a rank's process ended
  kSilence,  // nothing was heard of a rank for a heartbeat
  kAbort,    // a rank called abort
  kRevoke,   // a rank called revoke: nobody is gone
  kError,    // an operation failed on a rank, which is still there
  kGivenUp   // a rank gave up what was made of the communicator, and is still there
};

// The first thing that stopped a communicator, as every rank is told it.
struct Failure {
  int rank = -1;  // who is gone, or whom the failure comes from; -1 when not known
  Stop stop = Stop::kDeath;
  ErrorCode code = ErrorCode::kRemote;  // what the other ranks' calls return
  std::string text;                     // "rank 3 (host n2, pid 411) left: connection closed"
};

}  // namespace tutti::control

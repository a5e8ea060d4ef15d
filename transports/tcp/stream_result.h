// How a turn on a stream socket ended.
#pragma once
#include <cstdint>

namespace tutti::transports {

enum class StreamFault : uint8_t {
  kNone,
  kSystem,
  kClosed,
  kTorn,
  kNoFrame,
  kTooLong,
  kOutOfOrder,
  kForged,
  kUnsealed
};

struct StreamResult {
  bool moved = false;
  StreamFault fault = StreamFault::kNone;
  int errorNumber = 0;           // for kSystem
  uint64_t seen = 0, right = 0;  // for a bad frame: what stood there, and what should have
};

}  // namespace tutti::transports

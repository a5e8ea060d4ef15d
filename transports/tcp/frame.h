// What stands before each slot's payload on a TCP stream. Little-endian, fixed size.
#pragma once
#include <bit>
#include <cstdint>

#include "link/fifo.h"

namespace tutti::transports {

static_assert(std::endian::native == std::endian::little, "frames are written as they lie in memory");

inline constexpr uint32_t kFrameMagic = 0x01747574;  // "tut", version 1

struct DataFrame {
  uint32_t magic = kFrameMagic;
  uint32_t bytes = 0;     // of payload that follow
  uint64_t sequence = 0;  // the slot's number + 1, as in its header
  link::Fingerprint fingerprint;
};
static_assert(sizeof(DataFrame) == 32);

}  // namespace tutti::transports

// What a data stream between two ranks goes over. kUnix needs the same host.
#pragma once
#include <cstdint>

namespace tutti::control {

enum class StreamKind : uint8_t { kUnix, kTcp };

}  // namespace tutti::control

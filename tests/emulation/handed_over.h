// Bytes that a test hands to another process of its program, through the environment.
#pragma once
#include <fmt/format.h>

#include <cstdlib>
#include <span>
#include <string>

#include "base/bytes.h"

namespace tutti::emulation {

inline constexpr const char* kHandedOver = "TUTTI_TEST_EXPORTED";

// The setting that hands them over: see startOtherProcess.
inline std::string handing(std::span<const std::byte> bytes) {
  std::string setting = fmt::format("{}=", kHandedOver);
  for (const std::byte b : bytes) setting += fmt::format("{:02x}", static_cast<unsigned>(b));
  return setting;
}

// In the other process; empty when this is none.
inline Bytes handedOver() {
  const char* const set = std::getenv(kHandedOver);
  const std::string hex = set != nullptr ? set : "";
  Bytes bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

}  // namespace tutti::emulation

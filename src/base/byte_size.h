// Sizes as people write them for programs.
#pragma once
#include <cmath>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>

namespace tutti {

// "8", "64K", "1.5M", "2g": bytes, in powers of 1024. nullopt for what is no such number, is less than 0, or is more
// than 2^50.
inline std::optional<size_t> parseByteSize(const std::string& text) {
  size_t used = 0;
  double number = -1;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  const std::string unit = text.substr(used);
  const size_t place = unit.size() == 1 ? std::string("KkMmGg").find(unit[0]) : std::string::npos;
  if (used == 0 || (!unit.empty() && place == std::string::npos)) return std::nullopt;
  const double bytes = unit.empty() ? number : std::ldexp(number, 10 * static_cast<int>(place / 2 + 1));
  if (!(bytes >= 0) || bytes > 0x1p50) return std::nullopt;
  return static_cast<size_t>(bytes);
}

}  // namespace tutti

#include "base/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace tutti::settings {

std::optional<std::string> find(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string text(const char* name, const std::string& fallback) { return find(name).value_or(fallback); }

int64_t number(const char* name, int64_t fallback, int64_t low, int64_t high) {
  const auto value = find(name);
  if (!value) return fallback;
  int64_t parsed = 0;
  const char* end = value->data() + value->size();
  const auto [stop, failure] = std::from_chars(value->data(), end, parsed);
  if (failure != std::errc() || stop != end || parsed < low || parsed > high)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}={}: expected a whole number from {} to {}", name, *value, low, high));
  return parsed;
}

}  // namespace tutti::settings

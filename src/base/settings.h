// Environment variables: the only place that calls getenv. Values are read when a context or communicator is made
// and passed down as plain data, never looked up on a path that runs per call.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace tutti::settings {

// The variable's value; nullopt when unset or empty.
std::optional<std::string> find(const char* name);
std::string text(const char* name, const std::string& fallback);
// Throws Error(kInvalidArgument) that names variable, value and range when it is no whole number within [low, high].
int64_t number(const char* name, int64_t fallback, int64_t low, int64_t high);

}  // namespace tutti::settings

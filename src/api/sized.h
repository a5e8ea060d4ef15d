// Structs that the library fills in, whose size the caller says: older and newer headers have shorter and longer ones.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "api/check.h"

namespace tutti::api {

// Throws Error unless into->size may be one. `what`: "stats", of a tuttiCommStats_t.
template <class Struct>
void checkSized(const Struct* into, const char* call, const char* what, const char* type) {
  checkPointer(into, call, what);
  if (into->size < sizeof(size_t) || into->size > kLargestStruct)
    invalid(call, fmt::format("{}->size is {}; set it to sizeof({})", what, into->size, type));
}

// A newer program's further fields become 0, and `size` says how much of its struct this library knows.
template <class Struct>
void fillSized(Struct* into, Struct full) noexcept {
  full.size = std::min(into->size, sizeof full);
  std::memset(into, 0, into->size);
  std::memcpy(into, &full, full.size);
}

// Cut where it is longer.
inline void copyText(char* into, size_t room, std::string_view text) noexcept {
  const size_t length = std::min(room - 1, text.size());
  std::memcpy(into, text.data(), length);
  into[length] = '\0';
}
template <size_t kRoom>
void copyText(char (&into)[kRoom], std::string_view text) noexcept {
  copyText(into, kRoom, text);
}

}  // namespace tutti::api

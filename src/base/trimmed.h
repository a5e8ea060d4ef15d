// Text without the white space around it.
#pragma once
#include <string_view>

namespace tutti {

inline std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace tutti

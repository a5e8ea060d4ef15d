#include "base/plain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace tutti {
namespace {

constexpr std::string_view kCut = "...";

size_t lengthBy(unsigned char first) noexcept {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

bool isPrintable(uint32_t point) noexcept {
  const bool controls = point < 0x20 || (point >= 0x7f && point < 0xa0);
  const bool turns = point == 0x200e || point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
                     (point >= 0x2066 && point <= 0x2069);
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  const bool none = (point & 0xfffe) == 0xfffe;  // which XML, too, has no room for
  return !controls && !turns && !surrogate && !none && point < 0x110000;
}

// Bytes of the printable character that `text`, which is not empty, begins with; 0: it begins with none.
size_t printable(std::string_view text) noexcept {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t bytes = lengthBy(at(0));
  if (bytes == 0 || bytes > text.size()) return 0;
  uint32_t point = bytes == 1 ? at(0) : at(0) & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
    point = point << 6 | (at(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // less in so many bytes is another way to write it
  return point >= kLeast[bytes] && isPrintable(point) ? bytes : 0;
}

}  // namespace

std::string plainText(std::string_view text, size_t most, char let) {
  std::string plain;
  size_t whole = 0;  // what stays of it before kCut
  while (!text.empty() && plain.size() <= most) {
    const size_t bytes = let != '\0' && text.front() == let ? 1 : printable(text);
    if (bytes != 0)
      plain += text.substr(0, bytes);
    else
      fmt::format_to(std::back_inserter(plain), "\\x{:02x}", static_cast<unsigned char>(text.front()));
    text.remove_prefix(bytes != 0 ? bytes : 1);
    if (plain.size() + kCut.size() <= most) whole = plain.size();
  }
  if (plain.size() <= most) return plain;
  plain.resize(whole);
  return plain += kCut;
}

size_t jsonDepth(std::string_view text) noexcept {
  size_t depth = 0, most = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{') most = std::max(most, ++depth);
    if ((c == ']' || c == '}') && depth > 0) --depth;
  }
  return most;
}

}  // namespace tutti

#include "topology/bus_id.h"

#include <charconv>

namespace tutti::topology {
namespace {

// All of `text`, of at least `least` and at most `most` digits.
std::optional<uint64_t> hexadecimal(std::string_view text, size_t least, size_t most) {
  uint64_t value = 0;
  if (text.size() < least || text.size() > most) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<uint64_t> parseBusId(std::string_view text) {
  const size_t first = text.find(':');
  if (first == std::string_view::npos || text.size() != first + 8) return std::nullopt;
  if (text[first + 3] != ':' || text[first + 6] != '.') return std::nullopt;
  const auto domain = hexadecimal(text.substr(0, first), 1, 8), bus = hexadecimal(text.substr(first + 1, 2), 2, 2),
             device = hexadecimal(text.substr(first + 4, 2), 2, 2),
             function = hexadecimal(text.substr(first + 7), 1, 1);
  if (!domain || !bus || !device || !function) return std::nullopt;
  return *domain << 20 | *bus << 12 | *device << 4 | *function;
}

bool isHiddenFabric(std::string_view busId) { return parseBusId(busId) == parseBusId("fffffff:ff:ff.0"); }

}  // namespace tutti::topology

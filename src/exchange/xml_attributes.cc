#include "exchange/xml_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/error.h"
#include "base/plain_text.h"

namespace tutti::topology {
namespace {

std::optional<int64_t> wholeNumber(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::string> XmlAttributes::text(const char* name) {
  taken_.emplace_back(name);
  const pugi::xml_attribute found = element_.attribute(name);
  return found ? std::optional<std::string>(found.value()) : std::nullopt;
}

std::optional<int64_t> XmlAttributes::number(const char* name, Bounds bounds) {
  const auto said = text(name);
  if (!said || said->empty()) return std::nullopt;
  const auto value = wholeNumber(*said);
  if (!value || *value < bounds.least || *value > bounds.most)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: {}=\"{}\" must be a whole number from {} to {}", describe(element_), name,
                            plainText(*said, kLongestShown), bounds.least, bounds.most));
  return value;
}

std::vector<std::pair<std::string, std::string>> XmlAttributes::rest() const {
  std::vector<std::pair<std::string, std::string>> left;
  for (const pugi::xml_attribute& one : element_.attributes())
    if (std::find(taken_.begin(), taken_.end(), one.name()) == taken_.end()) left.emplace_back(one.name(), one.value());
  return left;
}

std::string describe(const pugi::xml_node& element) {
  const pugi::xml_attribute first = element.first_attribute();
  const std::string name = plainText(element.name(), kLongestShown);
  if (!first) return fmt::format("<{}>", name);
  return fmt::format("<{} {}=\"{}\">", name, plainText(first.name(), kLongestShown),
                     plainText(first.value(), kLongestShown));
}

std::string textOf(const pugi::xml_node& element) {
  std::ostringstream text;
  element.print(text, "", pugi::format_raw | pugi::format_no_declaration);
  return text.str();
}

}  // namespace tutti::topology

#include "exchange/hwloc_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tutti::topology {
namespace {

constexpr int kBits = 32;
constexpr size_t kDigits = 8;
constexpr size_t kMostGroups = 2048;  // 65536 processing units
constexpr std::string_view kAllAbove = "0xf...f";

std::optional<uint32_t> groupOf(std::string_view text) {
  uint32_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && text.size() <= kDigits ? std::optional(bits) : std::nullopt;
}

// One that is left out is 0.
std::optional<uint32_t> groupOfHwloc(std::string_view text) {
  if (text.empty()) return 0;
  return text.starts_with("0x") ? groupOf(text.substr(2)) : std::nullopt;
}

template <class Parse>
std::optional<std::vector<uint32_t>> parseGroups(std::string_view text, Parse parse) {
  std::vector<uint32_t> groups;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = text.find(',');
    const auto group = parse(text.substr(0, end));
    if (groups.size() >= kMostGroups) return std::nullopt;
    if (!group) return std::nullopt;
    groups.push_back(*group);
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  std::reverse(groups.begin(), groups.end());
  return groups;
}

}  // namespace

std::optional<std::vector<uint32_t>> parseHwlocSet(std::string_view text) {
  if (text.starts_with(kAllAbove)) text.remove_prefix(std::min(text.size(), kAllAbove.size() + 1));
  return parseGroups(text, groupOfHwloc);
}

std::string hwlocSetOf(const std::vector<uint32_t>& groups) {
  std::string text;
  for (size_t i = groups.size(); i-- > 0;)
    text += fmt::format("{}{}", groups[i] > 0 || i == 0 ? fmt::format("0x{:08x}", groups[i]) : "", i > 0 ? "," : "");
  return text.empty() ? "0x0" : text;
}

std::optional<std::vector<uint32_t>> parseAffinity(std::string_view text) { return parseGroups(text, groupOf); }

std::vector<int> membersOf(const std::vector<uint32_t>& groups) {
  std::vector<int> members;
  for (size_t i = 0; i < groups.size(); ++i)
    for (int bit = 0; bit < kBits; ++bit)
      if (groups[i] >> bit & 1) members.push_back(static_cast<int>(i) * kBits + bit);
  return members;
}

std::vector<uint32_t> setOf(const std::vector<int>& members) {
  std::vector<uint32_t> groups(members.empty() ? 0 : static_cast<size_t>(members.back() / kBits) + 1);
  for (const int member : members) groups[static_cast<size_t>(member / kBits)] |= 1U << member % kBits;
  return groups;
}

std::string affinityOf(const std::vector<uint32_t>& groups) {
  std::string text;
  for (size_t i = groups.size(); i-- > 0;) text += fmt::format("{}{:08x}", text.empty() ? "" : ",", groups[i]);
  return text;
}

}  // namespace tutti::topology

#include "exchange/hwloc_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tutti::topology {
namespace {

constexpr int kBits = 32;
constexpr size_t kMostGroups = 2048;  // 65536 processing units
constexpr std::string_view kAllAbove = "0xf...f";

std::optional<uint32_t> groupOf(std::string_view text) {
  if (text.empty()) return 0;
  if (!text.starts_with("0x") || text.size() < 3 || text.size() > 10) return std::nullopt;
  uint32_t bits = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(bits) : std::nullopt;
}

}  // namespace

std::optional<std::vector<uint32_t>> parseHwlocSet(std::string_view text) {
  std::vector<uint32_t> groups;
  if (text.starts_with(kAllAbove)) text.remove_prefix(std::min(text.size(), kAllAbove.size() + 1));
  for (size_t end = 0; end != std::string_view::npos && groups.size() < kMostGroups;) {
    end = text.find(',');
    const auto group = groupOf(text.substr(0, end));
    if (!group) return std::nullopt;
    groups.push_back(*group);
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  std::reverse(groups.begin(), groups.end());
  return groups;
}

std::vector<int> membersOf(const std::vector<uint32_t>& groups) {
  std::vector<int> members;
  for (size_t i = 0; i < groups.size(); ++i)
    for (int bit = 0; bit < kBits; ++bit)
      if (groups[i] >> bit & 1) members.push_back(static_cast<int>(i) * kBits + bit);
  return members;
}

std::string affinityOf(const std::vector<uint32_t>& groups) {
  std::string text;
  for (size_t i = groups.size(); i-- > 0;) text += fmt::format("{}{:08x}", text.empty() ? "" : ",", groups[i]);
  return text;
}

}  // namespace tutti::topology

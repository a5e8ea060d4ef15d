#include "schedule/row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "schedule/schedule.h"

namespace tutti::schedule {
namespace {

// The same, numbered from 0 on as they first come.
std::vector<int> numberedAsTheyCome(std::span<const int> groupOf) {
  std::unordered_map<int, int> numbers;
  std::vector<int> hosts;
  for (const int group : groupOf)
    hosts.push_back(numbers.try_emplace(group, static_cast<int>(numbers.size())).first->second);
  return hosts;
}

}  // namespace

// FNV-1a.
uint16_t digestOf(std::span<const int> numbers) noexcept {
  uint32_t hash = 0x811c9dc5;
  for (const int number : numbers) hash = (hash ^ static_cast<uint32_t>(number)) * 0x01000193;
  return static_cast<uint16_t>((hash ^ hash >> 9 ^ hash >> 18) & Schedule::kMostGrouping);
}

Row::Row(std::span<const int> groupOf, std::span<const int> within) {
  const std::vector<int> hosts = numberedAsTheyCome(groupOf);
  if (within.empty() && std::ranges::is_sorted(hosts)) return;
  ranks_.resize(std::max(hosts.size(), within.size()));
  std::iota(ranks_.begin(), ranks_.end(), 0);
  std::ranges::stable_sort(ranks_, {}, [&](int rank) {
    return std::pair(hosts.empty() ? 0 : hosts[rank], within.empty() ? 0 : within[rank]);
  });
  if (std::ranges::is_sorted(ranks_)) ranks_.clear();
  places_.resize(ranks_.size());
  for (size_t place = 0; place < ranks_.size(); ++place) places_[ranks_[place]] = static_cast<int>(place);
}

std::string textOf(const Row& row, int size) {
  constexpr int kMostShown = 64;
  std::vector<int> ranks;
  for (int place = 0; place < std::min(size, kMostShown); ++place) ranks.push_back(row.rankAt(place));
  return fmt::format("{}{}", fmt::join(ranks, " "), size > kMostShown ? " ..." : "");
}

}  // namespace tutti::schedule

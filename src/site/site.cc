#include "site/site.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "schedule/row.h"
#include "site/host_word.h"

namespace tutti::site {

using topology::PathType;
using topology::PeerInfo;

namespace {

struct Told {
  int rank = 0;
  HostWord word;
};

// Each host is spoken for by one rank, and of its own ranks alone.
void requireOwn(const Told& told, std::span<const PeerInfo> infos) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < infos.size(); ++rank)
    if (infos[rank].hostId == infos[static_cast<size_t>(told.rank)].hostId) ranks.push_back(static_cast<int>(rank));
  // Of what is not known there is no order.
  const bool own =
      told.word.why.empty() ? std::ranges::is_permutation(told.word.order, ranks) : told.word.order.empty();
  if (told.rank == ranks.front() && own) return;
  throw Error(
      ErrorCode::kRemote,
      fmt::format("rank {} (host {}) tells an order of other ranks than those of its host: do all ranks run the "
                  "same tutti?",
                  told.rank, infos[static_cast<size_t>(told.rank)].hostName));
}

std::vector<Told> toldBy(std::span<const PeerInfo> infos, std::span<const Bytes> words) {
  std::vector<Told> all;
  for (size_t rank = 0; rank < words.size(); ++rank) {
    if (words[rank].empty()) continue;
    all.push_back({static_cast<int>(rank), decodeHostWord(words[rank])});
    requireOwn(all.back(), infos);
  }
  return all;
}

// The least of those that are known.
void limit(double& rate, double gigabytes) {
  if (gigabytes > 0) rate = rate > 0 ? std::min(rate, gigabytes) : gigabytes;
}

bool isMoved(const HostWord& word) { return !std::ranges::is_sorted(word.order); }

std::string orderText(std::span<const PeerInfo> infos, const std::vector<int>& within) {
  std::vector<int> hosts;
  for (const PeerInfo& info : infos)
    hosts.push_back(static_cast<int>(std::ranges::find(infos, info.hostId, &PeerInfo::hostId) - infos.begin()));
  return schedule::textOf(schedule::Row(hosts, within), static_cast<int>(infos.size()));
}

std::string ratesOf(const HostWord& word) {
  return fmt::format("{:.1f} GB/s to the next, {:.1f} GB/s to any other GPU of the host", word.ringGBs, word.pairGBs);
}

// Of several hosts the first that has an order of its own stands for all.
std::string textOf(std::span<const PeerInfo> infos, const std::vector<Told>& told, const std::vector<int>& within) {
  if (told.empty()) return "by the numbers of the ranks: there is one GPU";
  const auto unknown = std::ranges::find_if(told, [](const Told& one) { return !one.word.why.empty(); });
  const auto moved = std::ranges::find_if(told, [](const Told& one) { return isMoved(one.word); });
  const auto linked = std::ranges::find_if(told, [](const Told& one) { return one.word.ringGBs > 0; });
  std::string text = "by the numbers of the ranks";
  if (moved != told.end()) {
    const HostWord& word = moved->word;
    const char* const by = word.asNumbered ? "GPUs" : word.along <= PathType::kNvLink ? "NVLinks" : "links of the GPUs";
    text = fmt::format("by the {}: {} ({}; {})", by, orderText(infos, within), ratesOf(word), word.source);
  } else if (linked != told.end()) {
    text += fmt::format(", as no other carries more ({}; {})", ratesOf(linked->word), linked->word.source);
  } else if (unknown == told.end()) {
    text += ": each host has one GPU";
  }
  if (unknown != told.end())
    text += fmt::format("; not by the links of {}: {}", infos[static_cast<size_t>(unknown->rank)].hostName,
                        unknown->word.why);
  return text;
}

}  // namespace

Site siteOf(std::span<const PeerInfo> infos, std::span<const Bytes> words) {
  const std::vector<Told> told = toldBy(infos, words);
  Site site;
  for (const auto& [rank, word] : told) {
    limit(site.gpuGBs, word.pairGBs);
    limit(site.ringGBs, word.ringGBs);
    limit(site.nicGBs, word.nicGBs);
    limit(site.networkGBs, word.networkGBs);
    if (!isMoved(word)) continue;
    site.within.resize(infos.size());
    for (size_t place = 0; place < word.order.size(); ++place)
      site.within[static_cast<size_t>(word.order[place])] = static_cast<int>(place);
  }
  site.text = textOf(infos, told, site.within);
  return site;
}

}  // namespace tutti::site

#include "diagnose/banner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/version.h"
#include "net/network.h"
#include "process/log.h"
#include "wire/messages.h"

namespace tutti::comm {
namespace {

constexpr size_t kMostHosts = 16;  // with a row of their own
constexpr size_t kLeastBytes = 8, kMostBytes = 64 << 20;
constexpr Collective kPlanned[] = {Collective::kAllReduce, Collective::kBroadcast,     Collective::kReduce,
                                   Collective::kAllGather, Collective::kReduceScatter, Collective::kAllToAll};

struct Host {
  std::string name;
  std::vector<int> ranks{};
  std::set<uint64_t> processes{};
  uint32_t cores = 0;             // of the rank that has most
  topology::PeerInfo together{};  // coreBits: of all
  bool hasShare = false;          // some rank has a share of its cores' time, and no more
  size_t coresOfAll() const { return std::max<size_t>(cores, hasShare ? 0 : countOfCores(together)); }
};

void addCores(Host& host, const topology::PeerInfo& info) {
  host.cores = std::max(host.cores, info.cores);
  host.hasShare = host.hasShare || info.cores < countOfCores(info);
  std::vector<std::byte>& bits = host.together.coreBits;
  bits.resize(std::max(bits.size(), info.coreBits.size()));
  for (size_t i = 0; i < info.coreBits.size(); ++i) bits[i] |= info.coreBits[i];
}

// In the order of their lowest rank.
std::vector<Host> hostsOf(std::span<const topology::PeerInfo> infos) {
  std::vector<Host> hosts;
  std::map<uint64_t, size_t> numbers;
  for (size_t r = 0; r < infos.size(); ++r) {
    const auto [at, isNew] = numbers.emplace(infos[r].hostId, hosts.size());
    if (isNew) hosts.push_back({.name = infos[r].hostName});
    Host& host = hosts[at->second];
    host.ranks.push_back(static_cast<int>(r));
    host.processes.insert(infos[r].processToken);
    addCores(host, infos[r]);
  }
  return hosts;
}

// The first two ranks, if there are any, of which the second's info passes `is` beside the first's.
using Pair = std::pair<const topology::PeerInfo*, const topology::PeerInfo*>;
template <class KeyOf, class Is>
std::optional<Pair> pairOf(std::span<const topology::PeerInfo> infos, KeyOf keyOf, Is is) {
  std::map<uint64_t, const topology::PeerInfo*> first;
  for (const topology::PeerInfo& info : infos) {
    const auto [at, isNew] = first.emplace(keyOf(info), &info);
    if (!isNew && is(*at->second, info)) return Pair{at->second, &info};
  }
  return std::nullopt;
}

// "shm (not p2p: different processes)".
std::string transportBetween(const link::Registry& registry, const Pair& pair) {
  const link::Way way = registry.wayBetween(*pair.first, *pair.second);
  std::string text = way.transport == nullptr ? "none" : std::string(way.transport->name());
  if (!way.notFaster.empty()) text += fmt::format(" (not {})", fmt::join(way.notFaster, "; not "));
  return text;
}

std::string sizeText(size_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
  return bytes >= 1 << 10 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} B", bytes);
}

std::string plansOf(Collective collective, const PlanOf& planOf) {
  std::string text, now = planOf(collective, kLeastBytes);
  for (size_t begin = kLeastBytes, bytes = begin; bytes <= kMostBytes; bytes *= 2) {
    std::string next = bytes < kMostBytes ? planOf(collective, bytes * 2) : "";
    if (next == now) continue;
    const std::string to = begin == bytes ? "" : " to " + sizeText(bytes);
    text += fmt::format("{}{}{}: {}", text.empty() ? "" : "; ", sizeText(begin), to, now);
    now = std::move(next);
    begin = bytes * 2;
  }
  return text;
}

std::string planned(const Executor& executor, Collective collective, size_t bytes) {
  Call call;
  call.collective = collective;
  call.count = bytes;
  return executor.foresee(call);
}

Rows describeSettings(const Config& config) {
  Rows rows;
  if (config.encrypt) rows.emplace_back("encrypted", "what crosses a network");
  for (const auto& [name, text] : config.overridden) rows.emplace_back("overridden", text);
  return rows;
}

std::string headOf(const Team& team) {
  const std::string& name = team.config().name;
  const size_t hosts = hostsOf(team.infos()).size();
  const auto count = [](size_t number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  return fmt::format("tutti {}, communicator {:016x}{}: {} on {}; {} speaks for all", kVersion, team.id(),
                     name.empty() ? "" : fmt::format(" \"{}\"", name), count(team.infos().size(), "rank"),
                     count(hosts, "host"), team.rankName(team.rank()));
}

// Below the head each row on a line of its own.
std::string asTable(const std::string& head, const std::vector<Rows>& parts) {
  size_t width = 0;
  for (const Rows& rows : parts)
    for (const auto& [what, text] : rows) width = std::max(width, what.size());
  std::string table = head;
  for (const Rows& rows : parts)
    for (const auto& [what, text] : rows) table += fmt::format("\n    {:{}}  {}", what, width, text);
  return table;
}

std::string bannerOf(const Executor& executor, const Network& network) {
  const Team& team = executor.team();
  const PlanOf planOf = [&](Collective collective, size_t bytes) { return planned(executor, collective, bytes); };
  return asTable(headOf(team), {describeHosts(team.infos()), describeInterfaces(network), executor.describe(),
                                describeLinks(team.registry(), team.infos()), describePlans(planOf),
                                describeSettings(team.config())});
}

void tellVersion() {
  static std::once_flag once;
  std::call_once(once, [] { log::write(log::Level::kVersion, fmt::format("tutti {}", kVersion)); });
}

}  // namespace

Rows describeHosts(std::span<const topology::PeerInfo> infos) {
  const std::vector<Host> hosts = hostsOf(infos);
  Rows rows;
  size_t ranks = 0;
  for (const Host& host : hosts) {
    if (rows.size() == kMostHosts) break;
    const size_t cores = host.coresOfAll();
    ranks += host.ranks.size();
    rows.emplace_back("host " + host.name,
                      fmt::format("{}; {} process{}, {} core{}", control::nameRanks(host.ranks), host.processes.size(),
                                  host.processes.size() == 1 ? "" : "es", cores, cores == 1 ? "" : "s"));
  }
  if (hosts.size() > kMostHosts)
    rows.emplace_back("others",
                      fmt::format("{} more hosts with {} ranks", hosts.size() - kMostHosts, infos.size() - ranks));
  return rows;
}

Rows describeInterfaces(const Network& network) {
  try {
    std::vector<std::string> all;
    for (const auto& one : chosenInterfaces(network)) all.push_back(fmt::format("{} {}", one.name, ipOf(one.address)));
    return {{"addresses", all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", "))}};
  } catch (const Error& error) {
    return {{"addresses", error.what()}};
  }
}

Rows describeLinks(const link::Registry& registry, std::span<const topology::PeerInfo> infos) {
  using topology::PeerInfo;
  const auto process = [](const PeerInfo& info) { return info.processToken ^ info.hostId; };
  const auto host = [](const PeerInfo& info) { return info.hostId; };
  const auto all = [](const PeerInfo&) { return uint64_t{0}; };
  const std::pair<const char*, std::optional<Pair>> kinds[] = {
      {"links in a process", pairOf(infos, process, [](const PeerInfo&, const PeerInfo&) { return true; })},
      {"links in a host",
       pairOf(infos, host, [](const PeerInfo& a, const PeerInfo& b) { return a.processToken != b.processToken; })},
      {"links between hosts",
       pairOf(infos, all, [](const PeerInfo& a, const PeerInfo& b) { return a.hostId != b.hostId; })}};
  Rows rows;
  for (const auto& [kind, pair] : kinds)
    if (pair) rows.emplace_back(kind, transportBetween(registry, *pair));
  return rows;
}

Rows describePlans(const PlanOf& planOf) {
  Rows rows{
      {"plans",
       "by bytes (of all-gather, reduce-scatter and all-to-all: of a rank's part); over 1 channel where no number "
       "is told"}};
  for (const Collective collective : kPlanned)
    rows.emplace_back(fmt::format("  {}", nameOf(collective)), plansOf(collective, planOf));
  return rows;
}

void introduce(const Executor& executor, const Network& network) noexcept {
  if (executor.team().rank() != 0 || !log::enabled(log::Level::kVersion)) return;
  try {
    if (!log::enabled(log::Level::kInfo)) return tellVersion();
    log::write(log::Level::kInfo, bannerOf(executor, network));
  } catch (const std::exception& error) {  // what only tells must not fail what it tells of
    log::info("the table of this communicator cannot be shown: {}", error.what());
  }
}

}  // namespace tutti::comm

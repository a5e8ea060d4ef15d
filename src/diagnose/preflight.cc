#include "diagnose/preflight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "preflight/collect.h"
#include "preflight/findings.h"
#include "process/log.h"
#include "process/process_object.h"
#include "team/mail_key.h"

namespace tutti::comm {
namespace {

using preflight::Finding;
using preflight::HostReport;

// Once is enough: the hosts do not change.
struct Looked {
  std::atomic<bool> once{false};
};

// The first rank of each host, ascending.
std::vector<int> firstRanks(const Team& team) {
  std::vector<int> first;
  std::set<uint64_t> hosts;
  for (int rank = 0; rank < team.size(); ++rank)
    if (hosts.insert(team.info(rank).hostId).second) first.push_back(rank);
  return first;
}

HostReport reportOf(const Team& team, const Network& network) {
  const topology::PeerInfo& self = team.info(team.rank());
  HostReport report = preflight::collect(preflight::sourcesHere(network, team.config().transportSettings.values));
  report.host = self.hostName;
  report.hostId = self.hostId;
  report.firstRank = team.rank();
  report.ranks = static_cast<int>(std::ranges::count(team.infos(), self.hostId, &topology::PeerInfo::hostId));
  if (const auto lack = self.lacks.find("verbs"); lack != self.lacks.end()) report.lacksVerbs = lack->second;
  return report;
}

// Rank 0's. The hosts whose reports have not come are named.
std::vector<HostReport> gather(Team& team, const Network& network, const std::vector<int>& from) {
  constexpr std::chrono::seconds kPatience(10);
  const Deadline deadline = Deadline::in(kPatience);
  std::vector<HostReport> reports{reportOf(team, network)};
  std::vector<std::string> missing;
  for (size_t i = 1; i < from.size(); ++i) {
    auto told = team.plane().poll(from[i], MailKey::preflight().mailbox());
    while (!told && !deadline.passed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      told = team.plane().poll(from[i], MailKey::preflight().mailbox());
    }
    if (told)
      reports.push_back(preflight::decodeHostReport(*told));
    else
      missing.push_back(team.rankName(from[i]));
  }
  if (!missing.empty())
    log::warn("TUTTI_PREFLIGHT: after {} s nothing has come from {}: their hosts are not looked at", kPatience.count(),
              fmt::join(missing, ", "));
  preflight::tellApart(reports);
  return reports;
}

void tell(const std::vector<HostReport>& reports) {
  const std::vector<Finding> findings = preflight::findingsOf(reports);
  for (const Finding& one : findings) {
    const bool isGrave = one.severity >= preflight::Severity::kWarning;
    log::line(isGrave ? log::Level::kWarn : log::Level::kInfo, "TUTTI_PREFLIGHT: {}", preflight::textOf(one));
  }
  log::info("TUTTI_PREFLIGHT: {} host{} looked at, {} to mend", reports.size(), reports.size() == 1 ? "" : "s",
            std::ranges::count_if(findings,
                                  [](const Finding& one) { return one.severity >= preflight::Severity::kWarning; }));
}

void look(Team& team, const Network& network) {
  const std::vector<int> first = firstRanks(team);
  if (team.rank() == 0) return tell(gather(team, network, first));
  if (std::ranges::find(first, team.rank()) == first.end()) return;
  team.plane().post(0, MailKey::preflight().mailbox(), preflight::encode(reportOf(team, network)));
}

}  // namespace

bool mayLookAtHosts() { return !ofThisProcess<Looked>().once.load(std::memory_order_relaxed); }

void lookAtHosts(Team& team, const Network& network) noexcept try {
  if (std::ranges::none_of(team.infos(), [](const auto& info) { return info.wantsPreflight; })) return;
  ofThisProcess<Looked>().once.store(true, std::memory_order_relaxed);
  look(team, network);
} catch (const std::exception& error) {  // what only looks must not fail what it looks at
  log::warn("TUTTI_PREFLIGHT: the hosts could not be looked at: {}", error.what());
}

}  // namespace tutti::comm

#include "doctor/net/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "base/error.h"
#include "comm/self.h"
#include "control/plane.h"
#include "doctor/net/pair_records.h"
#include "doctor/net/rounds.h"
#include "doctor/net/talk.h"
#include "launch/bounded_wait.h"
#include "launch/rendezvous.h"
#include "preflight/collect.h"
#include "team/links.h"
#include "topology/peer_info.h"

namespace tutti::doctor::net {
namespace {

using preflight::HostReport;
using preflight::PairResult;
using topology::PeerInfo;

using Hosts = std::vector<std::vector<int>>;

Hosts hostsOf(const std::vector<PeerInfo>& infos) {
  Hosts hosts;
  std::map<uint64_t, size_t> numbers;
  for (size_t rank = 0; rank < infos.size(); ++rank) {
    const auto [at, isNew] = numbers.emplace(infos[rank].hostId, hosts.size());
    if (isNew) hosts.emplace_back();
    hosts[at->second].push_back(static_cast<int>(rank));
  }
  return hosts;
}

HostReport reportOf(const comm::Config& config, const Network& network, const PeerInfo& info) {
  HostReport report = preflight::collect(preflight::sourcesHere(network, config.transportSettings.values));
  report.host = info.hostName;
  report.hostId = info.hostId;
  if (const auto lack = info.lacks.find("verbs"); lack != info.lacks.end()) report.lacksVerbs = lack->second;
  return report;
}

class Job {
 public:
  Job(const control::LaunchInfo& launch, const Wishes& wishes) : wishes_(wishes) {
    config_ = comm::Config::fromEnvironment();
    config_.device = -1;
    join(launch);
    for (int rank = 0; rank < launch.size; ++rank) infos_.push_back(topology::decodePeerInfo(plane_->info(rank)));
    hosts_ = hostsOf(infos_);
    outcome_.ranks = launch.size;
  }

  Outcome run() {
    try {
      exchangeReports();
      chooseTransports();
      measure();
    } catch (const Error& error) {
      take(mine_);
      const auto failure = plane_->failure();
      outcome_.broken = failure ? failure->text : error.what();
    }
    connected_.clear();
    plane_->leave();
    return std::move(outcome_);
  }

 private:
  void join(const control::LaunchInfo& launch) {
    self_ = comm::Self::find(config_);
    self_.check();
    const Deadline deadline = Deadline::in(config_.joinTimeout);
    const control::BoundedWait patience(deadline, {}, launch.rank);
    control::JoinRequest request = comm::requestFor(config_, self_, std::make_shared<comm::Recorder>());
    request.id = control::meetingPlace(launch, self_.network, patience);
    request.rank = launch.rank;
    request.size = launch.size;
    plane_ = control::Plane::begin(request);
    plane_->awaitJoined(Deadline::never());
  }

  // Others may still be at a pair that does not answer: much longer than that can take.
  Deadline soon() const { return Deadline::in(wishes_.patience * 6 + std::chrono::seconds(60)); }
  int rank() const { return plane_->rank(); }

  const std::vector<int>& ranksOfMyHost() const {
    return *std::ranges::find_if(hosts_,
                                 [&](const auto& ranks) { return std::ranges::find(ranks, rank()) != ranks.end(); });
  }

  void exchangeReports() {
    const std::vector<int>& mine = ranksOfMyHost();
    Bytes told;
    if (mine.front() == rank()) {
      HostReport report = reportOf(config_, self_.network, infos_[static_cast<size_t>(rank())]);
      report.firstRank = rank();
      report.ranks = static_cast<int>(mine.size());
      told = preflight::encode(report);
    }
    const auto all = plane_->allGather(told, soon());
    for (const auto& ranks : hosts_)
      outcome_.reports.push_back(preflight::decodeHostReport(all[static_cast<size_t>(ranks.front())]));
    preflight::tellApart(outcome_.reports);
  }

  // Those that some pair may use; in an order that all ranks have. Where no pair may, the reason is the first pair's.
  void chooseTransports() {
    std::vector<std::string> names = comm::registryFor(config_).allowed();
    std::ranges::sort(names);
    for (const std::string& name : names) {
      comm::Config narrow = config_;
      narrow.transports = name;
      const auto [registry, isNew] =
          registries_.emplace(name, std::make_unique<link::Registry>(comm::registryFor(narrow)));
      registry->second->keepQuiet();  // the table tells what does not work
      if (name == "p2p") continue;
      const bool isInside = name == "shm";
      if (isInside) inside_.push_back(name);
      if (!isInside && hosts_.size() > 1 && isWanted(name)) between_.push_back(name);
    }
  }

  // A transport that lacks something on all hosts, or on one of each pair, is no use.
  bool isWanted(const std::string& name) {
    std::vector<std::string> why;
    for (size_t a = 0; a < hosts_.size(); ++a)
      for (size_t b = a + 1; b < hosts_.size(); ++b)
        if (!registries_.at(name)->candidates(leadOf(a), leadOf(b), &why).empty()) return true;
    const auto first = std::ranges::find_if(why, [&](const auto& one) { return one.starts_with(name + ": "); });
    if (first != why.end()) outcome_.notes.push_back(fmt::format("not measured: {}", *first));
    return false;
  }

  const PeerInfo& leadOf(size_t host) const { return infos_[static_cast<size_t>(hosts_[host].front())]; }

  void measure() {
    const Tournament all = tournament(hosts_, inside_, between_, wishes_.mostRounds);
    if (all.left > 0)
      outcome_.notes.push_back(
          fmt::format("of each transport, {} pairs of hosts are not measured: each host meets {} others (--rounds)",
                      all.left, wishes_.mostRounds));
    for (const Round& round : all.rounds) {
      share();
      connected_.clear();  // both ends are done with them
      for (const Meeting& one : round)
        if (one.low == rank() || one.high == rank()) mine_.push_back(meet(one));
    }
    share();
  }

  // All begin a round together, and know what came of those before.
  void share() {
    const auto all = plane_->allGather(encode(mine_), soon());
    mine_.clear();
    for (const Bytes& told : all) take(decodePairs(told));
  }

  void take(const std::vector<PairResult>& pairs) {
    for (PairResult pair : pairs) {
      pair.lowHost = hostOf(pair.low);
      pair.highHost = hostOf(pair.high);
      merge(pair, outcome_.pairs);
    }
  }

  size_t hostOf(int wanted) const {
    for (size_t host = 0; host < hosts_.size(); ++host)
      if (std::ranges::find(hosts_[host], wanted) != hosts_[host].end()) return host;
    throw Error(ErrorCode::kRemote, fmt::format("a rank tells of rank {}, which there is not", wanted));
  }

  PairResult meet(const Meeting& meeting) {
    PairResult pair;
    pair.low = meeting.low;
    pair.high = meeting.high;
    pair.transport = meeting.transport;
    try {
      const Measured measured = talk(meeting);
      pair.latencyUs = measured.latencyUs;
      pair.there = measured.there;
      pair.back = measured.back;
    } catch (const Error& error) {
      pair.why = shortReason(error.what(), meeting.transport);
    }
    return pair;
  }

  Measured talk(const Meeting& meeting) {
    const bool isLower = meeting.low == rank();
    const int peer = isLower ? meeting.high : meeting.low;
    const auto number = std::distance(registries_.begin(), registries_.find(meeting.transport));
    connected_.push_back(
        std::make_unique<comm::Links>(*plane_, *registries_.at(meeting.transport), infos_, wishes_.patience));
    link::Connection& connection = connect(*connected_.back(), peer, static_cast<int>(number));
    const Terms terms{wishes_.each, wishes_.patience, &plane_->failed()};
    return isLower ? talkAsLower(connection, terms) : talkAsHigher(connection, terms);
  }

  // Bounded by the links themselves; but for a peer that does not come to it.
  link::Connection& connect(comm::Links& links, int peer, int channel) const {
    const Deadline deadline = Deadline::in(wishes_.patience * 3);
    for (;;) {
      if (link::Connection* const found = links.find(peer, channel)) return *found;
      if (deadline.passed())
        throw Error(ErrorCode::kTimeout,
                    fmt::format("it was not connected within {} ms", 3 * wishes_.patience.count()));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  const Wishes wishes_;
  comm::Config config_;
  comm::Self self_;
  std::shared_ptr<control::Plane> plane_;
  std::vector<PeerInfo> infos_;
  Hosts hosts_;
  std::map<std::string, std::unique_ptr<link::Registry>> registries_;  // each of one transport
  std::vector<std::string> inside_, between_;
  std::vector<std::unique_ptr<comm::Links>> connected_;  // of the round
  std::vector<PairResult> mine_;                         // of the round
  Outcome outcome_;
};

}  // namespace

Outcome lookHere() {
  const comm::Config config = comm::Config::fromEnvironment();
  const Network network = Network::fromEnvironment();
  PeerInfo info = topology::describeSelf();
  info.lacks = comm::registryFor(config).lacks(info);
  Outcome outcome;
  outcome.reports.push_back(reportOf(config, network, info));
  return outcome;
}

Outcome lookTogether(const control::LaunchInfo& launch, const Wishes& wishes) { return Job(launch, wishes).run(); }

}  // namespace tutti::doctor::net

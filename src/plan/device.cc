#include "plan/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "base/costs.h"
#include "plan/cost.h"
#include "schedule/algorithm.h"

namespace tutti::plan {

using namespace costs;
using schedule::Algorithm;

namespace {

// Of a rank to other hosts, in either direction: those of a node of two trees (schedule/tree.h).
constexpr int kMostFarLinks = 3;

const ProtocolCost& costOf(Protocol protocol, const DeviceMachine& machine) {
  return machine.linesMoveWhole ? rowOf(protocol).overNvlink : rowOf(protocol).overPcie;
}

int channelsFor(double bytes, const ProtocolCost& cost, int most) {
  return static_cast<int>(std::clamp(std::ceil(bytes / cost.bytesPerChannel), 1.0, static_cast<double>(most)));
}

double leastOf(double rate, double limit) { return limit > 0 ? std::min(rate, limit) : rate; }

schedule::Scale scaleOf(const DeviceMachine& machine) {
  schedule::Scale scale;
  scale.ranks = machine.ranks, scale.hosts = machine.hosts;
  scale.ranksPerHost = machine.ranksPerHost > 0 ? machine.ranksPerHost : machine.ranks / std::max(1, machine.hosts);
  scale.slotBytes = slots::kPricedBytesOnGpu;
  return scale;
}

// Among hosts, by what an algorithm needs of them.
double farSteps(Algorithm algorithm, const Request& request, const schedule::Scale& scale) {
  schedule::Scale hosts = scale;
  hosts.ranks = scale.hosts, hosts.ranksPerHost = 1;
  return scale.hosts > 1 ? workOf(algorithm, request, hosts).steps : 0;
}

// What one rank has to do: hand-overs one after the other, and bytes through its GPU's links and its way into the
// network at the same time.
struct Passage {
  double nearSteps = 0, farSteps = 0, moved = 0, crossing = 0;
  double crossers = 1;  // so many of its host's ranks send as much into the network
};

Passage passageOf(Algorithm algorithm, const Request& request, const schedule::Scale& scale) {
  const schedule::Workload work = workOf(algorithm, request, scale);
  Passage passage;
  passage.farSteps = std::min(work.steps, farSteps(algorithm, request, scale));
  passage.nearSteps = work.steps - passage.farSteps;
  passage.moved = std::max(work.busiest.sent, work.busiest.received) + waitedFor(work, {});
  if (scale.hosts > 1) passage.crossing = work.crossings * work.busiest.sent / work.crossers;
  passage.crossers = work.crossers;
  return passage;
}

// Within the hosts, and among them: each rank of a host has a part of that, unless there is a root, and while one part
// of the message is between hosts another is within them.
Passage passageInStages(const std::array<schedule::Stage, 2>& stages, const Request& request, int ranksPerHost) {
  const auto& [within, between] = stages;
  Passage passage = passageOf(within.algorithm, {request.collective, within.request.bytes}, within.scale);
  const Passage far = passageOf(between.algorithm, {request.collective, between.request.bytes}, between.scale);
  passage.farSteps = far.nearSteps + far.farSteps;
  passage.crossers = hasRoot(request.collective) ? 1 : ranksPerHost;
  passage.crossing = far.moved / passage.crossers;
  return passage;
}

Passage passageOf(Algorithm algorithm, const Request& request, const DeviceMachine& machine) {
  const schedule::Scale scale = scaleOf(machine);
  std::array<schedule::Stage, 2> stages;
  const Request plain{plainOf(request.collective), request.bytes};
  const auto split = schedule::rowOf(algorithm).stages;
  if (split != nullptr && split(plain, scale, stages)) return passageInStages(stages, plain, scale.ranksPerHost);
  return passageOf(algorithm, request, scale);
}

// What a GPU's links carry of what the algorithm sends within a host.
double linksOf(Algorithm algorithm, const DeviceMachine& machine) {
  return schedule::rowOf(algorithm).alongTheRow && machine.ringGBs > 0 ? machine.ringGBs : machine.gpuGBs;
}

// And what its way into the network carries, where so many of a host's ranks send: at worst they share one NIC.
double networkOf(double crossers, const DeviceMachine& machine) {
  return std::max(machine.networkGBs, machine.nicGBs / crossers);
}

DeviceChoice price(Algorithm algorithm, Protocol protocol, const Request& request, const DeviceMachine& machine,
                   int forcedChannels) {
  const ProtocolRow& row = rowOf(protocol);
  const ProtocolCost& cost = costOf(protocol, machine);
  const Passage passage = passageOf(algorithm, request, machine);
  const int channels = forcedChannels > 0 ? std::min(forcedChannels, machine.channels)
                                          : channelsFor(passage.moved, cost, machine.channels);
  const double nearGBs = leastOf(cost.channelGBs * channels, linksOf(algorithm, machine) * row.linkShare);
  const double farGBs = leastOf(cost.channelGBs * channels, networkOf(passage.crossers, machine) * row.linkShare);
  const double us = std::max(passage.moved / nearGBs, passage.crossing / farGBs) / 1e3;
  return {algorithm, protocol, channels,
          kDeviceLaunchUs + passage.nearSteps * cost.hopUs + passage.farSteps * row.networkHopUs + us};
}

DeviceChoice priceStreamed(Algorithm algorithm, const Request& request, const DeviceMachine& machine) {
  ClusterModel model;
  model.ranks = model.ranksPerHost = machine.ranks;
  model.slotBytes = slots::kPricedBytesInStreams;
  const schedule::Workload work = workOf(algorithm, request, model);
  const double moved = work.busiest.sent + work.busiest.received + waitedFor(work, {});  // one copy after the other
  return {algorithm, Protocol::kSimple, 1,
          work.steps * kStreamedHopUs + work.busiest.messages * kStreamedCopyUs + moved / (kStreamedGBs * 1e3)};
}

// Why an algorithm is out of the question whatever the protocol; empty where it is not.
std::string objection(Algorithm algorithm, const DeviceMachine& machine) {
  const schedule::AlgorithmRow& row = schedule::rowOf(algorithm);
  if (row.workload == nullptr) return "what it costs is not known; it is used where it is forced";
  if (row.objection != nullptr)
    if (std::string reason = row.objection(scaleOf(machine)); !reason.empty()) return reason;
  if (row.linksToAll && machine.ranks - 1 > machine.mostLinks)
    return fmt::format("it needs {} links a rank, of which a block serves {}", machine.ranks - 1, machine.mostLinks);
  // Where there are two stages, the first is among all ranks of a host; and there are links to other hosts.
  const int onHost = scaleOf(machine).ranksPerHost - 1 + kMostFarLinks;
  if (row.stages != nullptr && machine.hosts > 1 && onHost > machine.mostLinks)
    return fmt::format("it needs {} links a rank, of which a block serves {}", onHost, machine.mostLinks);
  return {};
}

// Whether a slot of the protocol has the room that the algorithm needs.
bool hasRoom(Algorithm algorithm, Protocol protocol, Collective collective, const DeviceMachine& machine) {
  return !packsAllRanks(algorithm, collective, machine.ranks) ||
         static_cast<uint32_t>(machine.ranks) <= machine.mostSegments[protocol];
}

bool suits(Algorithm algorithm, Protocol protocol, Collective collective, const DeviceMachine& machine) {
  return objection(algorithm, machine).empty() && hasRoom(algorithm, protocol, collective, machine);
}

// One choice in the making: what is asked for, and what became of each candidate.
class Weighing {
 public:
  Weighing(const Request& request, const DeviceMachine& machine, schedule::Allowed algorithms,
           AllowedProtocols protocols, int forcedChannels)
      : request_(request),
        machine_(machine),
        algorithms_(algorithms),
        protocols_(protocols),
        forcedChannels_(forcedChannels) {}

  // Without a best one where nothing fits; what is forced does.
  std::optional<DevicePlan> run() {
    const std::vector<Protocol> protocols = candidates();
    for (const Algorithm algorithm : schedule::algorithmsFor(request_))
      if (algorithms_.has(algorithm)) weigh(algorithm, protocols);
    auto& all = plan_.others;
    if (all.empty()) return std::nullopt;
    std::ranges::stable_sort(all, {}, &DeviceChoice::predictedUs);
    plan_.best = all.front();
    all.erase(all.begin());
    return plan_;
  }

 private:
  void exclude(std::string_view name, std::string_view why) {
    plan_.excluded.push_back(fmt::format("{}: {}", name, why));
  }

  std::vector<Protocol> candidates() {
    std::vector<Protocol> some;
    for (const Protocol one : kEveryProtocol) {
      if (mayTake(one, protocols_, machine_.linesMoveWhole)) {
        some.push_back(one);
      } else if (protocols_.has(one)) {
        exclude(nameOf(one), "not every link is known to move 128 bytes as a whole");
      } else {
        exclude(nameOf(one), "not allowed by TUTTI_PROTOCOL (config.protocol)");
      }
    }
    return some;
  }

  void weigh(Algorithm algorithm, std::span<const Protocol> protocols) {
    const bool forced = algorithms_.forced().has_value();
    if (const std::string why = objection(algorithm, machine_); !forced && !why.empty())
      return exclude(nameOf(algorithm), why);
    for (const Protocol one : protocols) {
      if (forced || hasRoom(algorithm, one, request_.collective, machine_)) {
        plan_.others.push_back(price(algorithm, one, request_, machine_, forcedChannels_));
      } else {
        exclude(nameOf(algorithm), fmt::format("a slot of {} has no room for a segment of each rank", nameOf(one)));
      }
    }
  }

  const Request& request_;
  const DeviceMachine& machine_;
  schedule::Allowed algorithms_;
  AllowedProtocols protocols_;
  int forcedChannels_;
  DevicePlan plan_;
};

}  // namespace

std::string describe(const DeviceChoice& choice) {
  return fmt::format("{} by {} over {} channel{}, predicted {:.1f} us", nameOf(choice.algorithm),
                     nameOf(choice.protocol), choice.channels, choice.channels == 1 ? "" : "s", choice.predictedUs);
}

DevicePlan weighDevice(const Request& request, const DeviceMachine& machine, schedule::Allowed algorithms,
                       AllowedProtocols protocols, int forcedChannels) {
  // What was asked for and is not there is told whatever is weighed in its place.
  const std::vector<std::string> refusals = refusalsOf(request, algorithms);
  const auto among = [&](schedule::Allowed some, AllowedProtocols over) {
    auto plan = Weighing(request, machine, some, over, forcedChannels).run();
    if (plan) plan->excluded.insert(plan->excluded.begin(), refusals.begin(), refusals.end());
    return plan;
  };
  const AllowedProtocols over = protocolsFor(protocols, machine.linesMoveWhole);
  if (auto plan = among(schedule::allowedFor(request, algorithms), over)) return *plan;
  if (auto plan = among({}, over)) return *plan;
  const DevicePlan direct{.best = {Algorithm::kDirect, over.forced().value_or(Protocol::kSimple), 1, 0},
                          .excluded = refusals};
  if (over.forced()) return direct;
  return among({}, {}).value_or(direct);
}

DeviceChoice chooseDevice(const Request& request, const DeviceMachine& machine, schedule::Allowed algorithms,
                          AllowedProtocols protocols, int forcedChannels) {
  return weighDevice(request, machine, algorithms, protocols, forcedChannels).best;
}

DeviceChoice chooseStreamed(const Request& request, const DeviceMachine& machine, schedule::Allowed algorithms) {
  const auto among = [&](schedule::Allowed some) {
    std::optional<DeviceChoice> best;
    for (const Algorithm algorithm : schedule::algorithmsFor(request)) {
      if (!some.has(algorithm)) continue;
      if (!some.forced() && !suits(algorithm, Protocol::kSimple, request.collective, machine)) continue;
      const DeviceChoice choice = priceStreamed(algorithm, request, machine);
      if (!best || choice.predictedUs < best->predictedUs) best = choice;
    }
    return best;
  };
  if (const auto best = among(schedule::allowedFor(request, algorithms))) return *best;
  return among({}).value_or(DeviceChoice{Algorithm::kDirect, Protocol::kSimple, 1, 0});
}

}  // namespace tutti::plan

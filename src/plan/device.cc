#include "plan/device.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/costs.h"
#include "plan/cost.h"
#include "schedule/algorithm.h"

namespace tutti::plan {

using namespace costs;
using schedule::Algorithm;

namespace {

const ProtocolCost& costOf(Protocol protocol, const DeviceMachine& machine) {
  return machine.linesMoveWhole ? rowOf(protocol).overNvlink : rowOf(protocol).overPcie;
}

int channelsFor(double bytes, const ProtocolCost& cost, int most) {
  return static_cast<int>(std::clamp(std::ceil(bytes / cost.bytesPerChannel), 1.0, static_cast<double>(most)));
}

DeviceChoice price(Algorithm algorithm, Protocol protocol, const Request& request, const DeviceMachine& machine,
                   int forcedChannels) {
  const ProtocolCost& cost = costOf(protocol, machine);
  ClusterModel model;
  model.ranks = model.ranksPerHost = machine.ranks;
  model.slotBytes = slots::kPricedBytesOnGpu;
  const schedule::Workload work = workOf(algorithm, request, model);
  const double moved = std::max(work.busiest.sent, work.busiest.received) + waitedFor(work, {});
  const int channels =
      forcedChannels > 0 ? std::min(forcedChannels, machine.channels) : channelsFor(moved, cost, machine.channels);
  const double bytesPerUs = cost.channelGBs * channels * 1e3;
  return {algorithm, protocol, channels, kDeviceLaunchUs + work.steps * cost.hopUs + moved / bytesPerUs};
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

// Whether a block has the links, and a slot of the protocol the room, that the algorithm needs.
bool suits(Algorithm algorithm, Protocol protocol, Collective collective, const DeviceMachine& machine) {
  const schedule::AlgorithmRow& row = schedule::rowOf(algorithm);
  if (row.workload == nullptr || (row.linksToAll && machine.ranks - 1 > machine.mostLinks)) return false;
  const uint32_t room = machine.mostSegments[protocol];
  return !packsAllRanks(algorithm, collective) || static_cast<uint32_t>(machine.ranks) <= room;
}

// None where nothing of that fits; what is forced does.
template <class Price>
std::optional<DeviceChoice> cheapest(const Request& request, const DeviceMachine& machine, schedule::Allowed algorithms,
                                     AllowedProtocols protocols, Price price) {
  std::optional<DeviceChoice> best;
  for (const Algorithm algorithm : schedule::algorithmsFor(request)) {
    if (!algorithms.has(algorithm)) continue;
    for (const Protocol protocol : kEveryProtocol) {
      if (!mayTake(protocol, protocols, machine.linesMoveWhole)) continue;
      if (!algorithms.forced() && !suits(algorithm, protocol, request.collective, machine)) continue;
      const DeviceChoice choice = price(algorithm, protocol);
      if (!best || choice.predictedUs < best->predictedUs) best = choice;
    }
  }
  return best;
}

}  // namespace

DeviceChoice chooseDevice(const Request& request, const DeviceMachine& machine, schedule::Allowed algorithms,
                          AllowedProtocols protocols, int forcedChannels) {
  const auto among = [&](schedule::Allowed some, AllowedProtocols over) {
    return cheapest(request, machine, some, over, [&](Algorithm algorithm, Protocol protocol) {
      return price(algorithm, protocol, request, machine, forcedChannels);
    });
  };
  const AllowedProtocols over = protocolsFor(protocols, machine.linesMoveWhole);
  if (const auto best = among(schedule::allowedFor(request, algorithms), over)) return *best;
  if (const auto best = among({}, over)) return *best;
  if (over.forced()) return {Algorithm::kDirect, *over.forced(), 1, 0};
  return among({}, {}).value_or(DeviceChoice{Algorithm::kDirect, Protocol::kSimple, 1, 0});
}

DeviceChoice chooseStreamed(const Request& request, const DeviceMachine& machine, schedule::Allowed algorithms) {
  const auto among = [&](schedule::Allowed some) {
    return cheapest(request, machine, some, Protocol::kSimple,
                    [&](Algorithm algorithm, Protocol) { return priceStreamed(algorithm, request, machine); });
  };
  if (const auto best = among(schedule::allowedFor(request, algorithms))) return *best;
  return among({}).value_or(DeviceChoice{Algorithm::kDirect, Protocol::kSimple, 1, 0});
}

}  // namespace tutti::plan

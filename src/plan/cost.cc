#include "plan/cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/costs.h"

namespace tutti::plan {

using namespace costs;
using schedule::Algorithm;
using schedule::Load;
using schedule::Workload;

namespace {

Workload oneMessage(double bytes) {
  Workload work;
  work.steps = 1;
  work.busiest = work.mean = {bytes, bytes, 0, 1};
  return work;
}

// Above the size of a core's cache each further byte costs more; continuous, so that times grow with size.
double coldness(double messageBytes, const Profile& prices) {
  if (messageBytes <= prices.hotBytes) return 1;
  return (prices.hotBytes + (messageBytes - prices.hotBytes) * prices.coldFactor) / messageBytes;
}

// How often the steps are gone through: a slot that carries a segment of nearly every rank has room for so much of each
// and no more. Of a step with half of all segments, the longest.
double roundsOf(Algorithm algorithm, const Request& request, const ClusterModel& machine) {
  if (!packsAllRanks(algorithm, request.collective, machine.ranks)) return 1;
  const double bytes = double(request.bytes) * (partsPerRank(request.collective) ? machine.ranks : 1);
  return std::max(1.0, std::ceil(bytes / 2 / machine.slotRoom));
}

// Containers of one are hosts, but nobody waits for a wire between them.
bool isOneMachine(const ClusterModel& machine) { return machine.hosts <= 1 || machine.machines == 1; }

// Broadcasts over sockets among ranks of a machine that share its cores are priced as one of many: whoever has passed
// it on goes on with the next, so how far away the last rank is delays nobody but for the way from core to core; what
// counts is what ranks have to do. Over memory, too, as long as they are short.
bool isOneOfMany(const Request& request, const LinkCost& link, const ClusterModel& machine) {
  const bool passesMany = link.latencyUs >= kNetworkLatencyUs || request.bytes <= kMostPassed;
  return plainOf(request.collective) == Collective::kBroadcast && isOneMachine(machine) && machine.ranksPerCore > 1 &&
         passesMany;
}

double microseconds(double bytes, double gigabytesPerSecond) { return bytes / (1e3 * gigabytesPerSecond); }

double flatUs(Algorithm algorithm, const Request& request, const ClusterModel& machine) {
  const Workload work = workOf(algorithm, request, machine);
  const Profile& prices = machine.prices;
  const bool spread = machine.hosts > 1, oneMachine = isOneMachine(machine);
  const LinkCost& link = spread ? machine.remote : machine.local;
  const bool network = link.latencyUs >= kNetworkLatencyUs;
  const double crowd = std::max(1.0, machine.ranksPerCore);
  const double fanLoss = !oneMachine && network ? 1 + prices.fanLoss * (work.fan - 1) : 1;
  // What ranks of one core hand each other is in its cache.
  const double whole = double(request.bytes) * (partsPerRank(request.collective) ? machine.ranks : 1) * machine.lanes;
  const double cold = machine.onOneCore ? 1 : coldness(whole, prices);

  const bool oneOfMany = isOneOfMany(request, link, machine);
  const double coresOnTheWay = std::max(1.0, std::ceil(machine.ranks / crowd) - 1);
  const double steps = oneOfMany ? std::min(work.steps, coresOnTheWay) : work.steps;
  const double gathered = oneOfMany && schedule::rowOf(algorithm).alongTheRow ? kGathered : 1;
  const double rounds = roundsOf(algorithm, request, machine);
  // Over memory that all have mapped, but for what is short (link::SharedSlots). Continuous, so that times grow with
  // size.
  const double shared = network || spread ? 0 : std::max(0.0, 1 - kLeastShared / std::max(1.0, double(request.bytes)));
  const auto busyUs = [&](const Load& load) {
    const double stored = load.sent - shared * load.repeated;
    const double slots = std::max(rounds * load.messages, load.received / machine.slotRoom);
    return cold * (microseconds(stored, prices.copyGBs) + microseconds(load.received, machine.local.bandwidthGBs) +
                   microseconds(load.combined, prices.combineGBs)) +
           gathered * (network ? slots * prices.networkMessageUs : load.messages * prices.mappedMessageUs);
  };
  // Over memory as many rounds as a link has slots are under way.
  const bool takesTurns = oneMachine && (network || crowd > 1);
  const double handed = takesTurns ? std::max(0.0, work.handed - (network ? 1 : slots::kDepth)) : 0;
  const double waiting = oneOfMany ? 0 : waitedFor(work, prices);
  const double waitingGBs = spread && oneMachine ? std::max(link.bandwidthGBs, kContainersGBs) : link.bandwidthGBs;
  // Drivers send from the caller's buffer otherwise. Every other call is taken to be in place. Between hosts, where a
  // wire is what is waited for, two shots take no less.
  const double keptUs = network && oneMachine ? microseconds(work.kept / 2, prices.copyGBs) : 0;
  const double wireUs =
      spread ? microseconds(work.crossings * work.busiest.sent, machine.remote.bandwidthGBs / fanLoss) : 0;
  return steps * link.latencyUs + steps * rounds * (crowd - 1) * prices.turnUs + handed * kRoundUs +
         std::max(busyUs(work.busiest), crowd * busyUs(work.mean)) + wireUs + crowd * cold * keptUs +
         cold * (microseconds(waiting, prices.copyGBs) + microseconds(waiting, waitingGBs));
}

}  // namespace

Workload workOf(Algorithm algorithm, const Request& request, const schedule::Scale& scale) {
  if (scale.ranks <= 1) return {};
  if (request.collective == Collective::kSendRecv) return oneMessage(double(request.bytes));
  const auto workload = schedule::rowOf(algorithm).workload;
  return workload == nullptr ? Workload() : workload({plainOf(request.collective), request.bytes}, scale);
}

bool packsAllRanks(Algorithm algorithm, Collective collective, int ranks) {
  const auto packs = schedule::rowOf(algorithm).packsAllRanks;
  return packs != nullptr && packs(collective, ranks);
}

double predictUs(Algorithm algorithm, const Request& request, const ClusterModel& machine) {
  std::array<schedule::Stage, 2> stages;
  const auto split = schedule::rowOf(algorithm).stages;
  if (split == nullptr || !split({plainOf(request.collective), request.bytes}, machine, stages))
    return flatUs(algorithm, request, machine);
  double sum = 0;
  for (const schedule::Stage& stage : stages) {
    ClusterModel part = machine;
    static_cast<schedule::Scale&>(part) = stage.scale;
    sum += flatUs(stage.algorithm, {request.collective, stage.request.bytes}, part);
  }
  return sum;
}

}  // namespace tutti::plan

#include "plan/cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/costs.h"

// Formulas: the textbook costs of collective algorithms (Chan, Heimlich, Purkayastha, van de Geijn, "Collective
// communication: theory, practice, and experience", 2007; Thakur, Rabenseifner, Gropp, "Optimization of collective
// communication operations in MPICH", 2005; Sanders, Speck, Träff, "Two-tree algorithms", 2009), with a rank's own
// stores, the hand-over and the reduction told apart, since over shared memory all three are the core's work.
//
// n ranks, S bytes of a whole message, b bytes of one rank's part:
//   one-shot     1 step,        (n-1) S sent and combined
//   two-shot     2 steps,       2 (n-1)/n S sent, (n-1)/n S combined
//   ring         2 (n-1) steps, the same bytes, one neighbour
//   halving      2 lg n steps,  the same bytes (and a fold of S in and out when n is no power of 2)
//   double tree  2 lg n steps for the first chunk, then 2 S, pipelined
//   Bruck        lg n steps,    (n-1) b for an all-gather, lg n · n/2 b for an all-to-all
namespace tutti::plan {

using namespace costs;
using schedule::Algorithm;

namespace {

int log2Ceil(int n) { return n <= 1 ? 0 : std::bit_width(static_cast<unsigned>(n - 1)); }

// The collective without its variant: a barrier is an all-reduce of nothing, a segment may have any length.
Collective plainOf(Collective collective) {
  switch (collective) {
    case Collective::kAllGatherV:
      return Collective::kAllGather;
    case Collective::kReduceScatterV:
      return Collective::kReduceScatter;
    case Collective::kAllToAllV:
      return Collective::kAllToAll;
    case Collective::kBarrier:
      return Collective::kAllReduce;
    default:
      return collective;
  }
}

bool partsPerRank(Collective collective) {
  return collective != Collective::kAllReduce && collective != Collective::kBroadcast &&
         collective != Collective::kReduce && collective != Collective::kSendRecv;
}

// Ranks that one step after another goes through until each rank's part has reached all.
double hopsOf(Algorithm algorithm, int n) {
  if (algorithm == Algorithm::kRing) return n - 1;
  return meetsAll(algorithm) ? 1 : log2Ceil(n);
}

// Peers of one receiver: at once where all send to all, one after the other (but ever farther away) where the distance
// doubles; either way the flows meet in the network, which those of a ring do not.
double fanOf(Algorithm algorithm, int n) {
  if (meetsAll(algorithm)) return n - 1;
  return algorithm == Algorithm::kRing ? 1 : std::max(1, log2Ceil(n));
}

// Part of the hops on the way of one chunk that lead to another host, with a host's ranks numbered one after the other.
double farShare(Algorithm algorithm, const Machine& machine) {
  if (machine.hosts <= 1) return 0;
  if (meetsAll(algorithm)) return 1;
  if (algorithm == Algorithm::kRing) return std::min(1.0, double(machine.hosts) / (machine.ranks - 1));
  return double(log2Ceil(machine.hosts)) / std::max(1, log2Ceil(machine.ranks));
}

double crossingsOf(Algorithm algorithm, const Machine& machine) {
  if (algorithm == Algorithm::kRing) return 1;
  if (algorithm == Algorithm::kTree) return std::min(2, machine.ranksPerHost);
  const double others = std::max(0, machine.ranks - machine.ranksPerHost);
  return machine.ranksPerHost * others / std::max(1, machine.ranks - 1);
}

// Every rank does the same: in `passes` passes it sends and takes `bytes` in all.
Work even(Algorithm algorithm, const Machine& machine, int passes, double bytes, double combined) {
  const int n = machine.ranks;
  const double hops = hopsOf(algorithm, n);
  Work work;
  work.steps = passes * hops;
  work.fan = fanOf(algorithm, n);
  work.busiest = {bytes, bytes, combined, passes * (meetsAll(algorithm) ? n - 1 : hops)};
  work.mean = work.busiest;
  work.waiting = kSkew * (work.steps - 1) * std::min<double>(bytes / work.steps, machine.slotBytes);
  work.crossings = crossingsOf(algorithm, machine);
  work.farSteps = work.steps * farShare(algorithm, machine);
  return work;
}

// Without a power of two the ranks above it hand their whole input to a partner first and get the result at last.
void foldRemainder(Work& work, const Machine& machine, double bytes) {
  if (std::has_single_bit(static_cast<unsigned>(machine.ranks))) return;
  const double part = 1.0 - double(std::bit_floor(static_cast<unsigned>(machine.ranks))) / machine.ranks;
  work.steps += 2, work.farSteps += machine.hosts > 1 ? 2 : 0;
  for (Load* load : {&work.busiest, &work.mean}) {
    const double share = load == &work.mean ? part : 1;
    load->sent += share * bytes, load->received += share * bytes, load->combined += share * bytes;
    load->messages += share;
  }
  work.waiting += std::min<double>(bytes, machine.slotBytes);
}

// A pipeline of chunks along trees or a chain of `depth` hops: the first chunk pays for the way, the rest follow.
void fillPipeline(Work& work, Algorithm algorithm, const Machine& machine, double depth, double chunk) {
  work.steps = depth;
  work.farSteps = depth * farShare(algorithm, machine);
  work.waiting = std::max(0.0, depth - 1) * std::min<double>(chunk, machine.slotBytes);
}

// In a double tree a rank is an inner node for one half of the message and a leaf for the other. An inner node handles
// the messages of two children, one after the other, at every level of the way.
Work treePass(const Machine& machine, double bytes, bool combine, int passes) {
  const double share = double(machine.ranks - 1) / machine.ranks, depth = passes * log2Ceil(machine.ranks);
  Work work;
  work.busiest = {passes * bytes, passes * bytes, combine ? bytes : 0, 2 * depth};
  work.mean = {share * passes * bytes, share * passes * bytes, combine ? share * bytes : 0, 2.0 * passes};
  fillPipeline(work, Algorithm::kTree, machine, depth, bytes / 2);
  work.crossings = crossingsOf(Algorithm::kTree, machine);
  return work;
}

Work chainPass(const Machine& machine, double bytes, bool combine) {
  const double share = double(machine.ranks - 1) / machine.ranks;
  Work work;
  work.busiest = {bytes, bytes, combine ? bytes : 0, 1};
  work.mean = {share * bytes, share * bytes, combine ? share * bytes : 0, share};
  fillPipeline(work, Algorithm::kRing, machine, machine.ranks - 1, bytes);
  return work;
}

// One rank has a link to every other; `out` and `in` are the bytes that it sends and takes. What the others do at the
// far ends counts as well: the last of them ends after the root.
Work star(const Machine& machine, double out, double in, double part, bool combine) {
  const int n = machine.ranks;
  const double all = double(n - 1) * part / n;
  Work work;
  work.steps = 1, work.farSteps = machine.hosts > 1 ? 1 : 0;
  work.fan = in > 0 ? n - 1 : 1;
  work.busiest = {std::max(out, part), std::max(in, part), combine ? in : 0, double(n - 1)};
  work.mean = {all, all, combine ? all : 0, double(n - 1) / n};
  work.crossings = (n - machine.ranksPerHost) * part / std::max(1.0, work.busiest.sent);
  return work;
}

Work allReduce(Algorithm algorithm, double bytes, const Machine& machine) {
  const double n = machine.ranks;
  if (algorithm == Algorithm::kTree) return treePass(machine, bytes, true, 2);
  if (algorithm == Algorithm::kOneShot || algorithm == Algorithm::kDirect) {
    return even(algorithm, machine, 1, (n - 1) * bytes, (n - 1) * bytes);
  }
  const double part = (n - 1) / n * bytes;
  Work work = even(algorithm, machine, 2, 2 * part, part);
  if (algorithm == Algorithm::kHalving || algorithm == Algorithm::kBruck) foldRemainder(work, machine, bytes);
  return work;
}

// Broadcast and reduce: along a tree or a chain, from or to a star, or as scatter and all-gather (reduce-scatter and
// gather).
Work rooted(Algorithm algorithm, bool combine, double bytes, const Machine& machine) {
  const double n = machine.ranks;
  if (algorithm == Algorithm::kTree) return treePass(machine, bytes, combine, 1);
  if (algorithm == Algorithm::kRing) return chainPass(machine, bytes, combine);
  if (algorithm == Algorithm::kOneShot || algorithm == Algorithm::kDirect) {
    const double all = (n - 1) * bytes;
    return star(machine, combine ? 0 : all, combine ? all : 0, bytes, combine);
  }
  const double part = (n - 1) / n * bytes;
  return even(algorithm, machine, 2, 2 * part, combine ? part : 0);
}

// Gather and scatter: what is not a star forwards the parts of the ranks behind it.
Work partsRooted(Algorithm algorithm, bool gathers, double bytes, const Machine& machine) {
  const double n = machine.ranks, all = (n - 1) * bytes;
  if (meetsAll(algorithm)) return star(machine, gathers ? 0 : all, gathers ? all : 0, bytes, false);
  const double hops = algorithm == Algorithm::kRing ? n - 1 : log2Ceil(machine.ranks);
  const double forwarded = bytes * (algorithm == Algorithm::kRing ? n / 2 : hops / 2);
  Work work;
  work.busiest = {all, all, 0, hops};
  work.mean = {forwarded, forwarded, 0, (n - 1) / n};
  const Algorithm pattern = algorithm == Algorithm::kRing ? Algorithm::kRing : Algorithm::kTree;
  work.steps = hops, work.farSteps = hops * farShare(pattern, machine);
  work.crossings = crossingsOf(pattern, machine);
  return work;
}

Work allToAll(Algorithm algorithm, double bytes, const Machine& machine) {
  const double n = machine.ranks;
  if (meetsAll(algorithm)) return even(algorithm, machine, 1, (n - 1) * bytes, 0);
  return even(algorithm, machine, 1, hopsOf(algorithm, machine.ranks) * n / 2 * bytes, 0);
}

Work oneMessage(double bytes, const Machine& machine) {
  Work work;
  work.steps = 1, work.farSteps = machine.hosts > 1 ? 1 : 0;
  work.busiest = work.mean = {bytes, bytes, 0, 1};
  return work;
}

// Above the size of a core's cache each further byte costs more; continuous, so that times grow with size.
double coldness(double messageBytes) {
  if (messageBytes <= kHotBytes) return 1;
  return (kHotBytes + (messageBytes - kHotBytes) * kColdFactor) / messageBytes;
}

double microseconds(double bytes, double gigabytesPerSecond) { return bytes / (1e3 * gigabytesPerSecond); }

double flatUs(Algorithm algorithm, const Request& request, const Machine& machine) {
  const Work work = workOf(algorithm, request.collective, double(request.bytes), machine);
  const bool spread = machine.hosts > 1;
  const LinkCost& link = spread ? machine.remote : machine.local;
  const bool network = link.latencyUs >= kNetworkLatencyUs;
  const double crowd = std::max(1.0, machine.ranksPerCore);
  const double fanLoss = network ? 1 + kFanLoss * (work.fan - 1) : 1;
  const double arrivalGBs = spread ? machine.local.bandwidthGBs : machine.local.bandwidthGBs / fanLoss;
  const double cold = coldness(double(request.bytes) * (partsPerRank(request.collective) ? machine.ranks : 1));

  const auto busyUs = [&](const Load& load) {
    return cold * (microseconds(load.sent, kCopyGBs) + microseconds(load.received, arrivalGBs) +
                   microseconds(load.combined, kCombineGBs)) +
           load.messages * (network ? kNetworkMessageUs : kMappedMessageUs);
  };
  const double wireUs =
      spread ? microseconds(work.crossings * work.busiest.sent, machine.remote.bandwidthGBs / fanLoss) : 0;
  return work.steps * (link.latencyUs + (crowd - 1) * kTurnUs) +
         std::max(busyUs(work.busiest), crowd * busyUs(work.mean)) + wireUs +
         cold * (microseconds(work.waiting, kCopyGBs) + microseconds(work.waiting, link.bandwidthGBs));
}

// Inside the hosts two-shot or direct, between them a ring of one rank a host; parts of ranks travel host by host.
double hierarchicalUs(const Request& request, const Machine& machine) {
  Machine inner = machine, outer = machine;
  inner.ranks = machine.ranksPerHost, inner.hosts = 1;
  outer.ranks = machine.hosts, outer.ranksPerHost = 1, outer.ranksPerCore = 1;
  const bool parts = partsPerRank(request.collective);
  const bool split = plainOf(request.collective) == Collective::kAllReduce;
  Request within = request, between = request;
  if (parts) between.bytes *= size_t(machine.ranksPerHost);
  if (parts && request.collective != Collective::kGather && request.collective != Collective::kScatter) {
    within.bytes *= size_t(machine.hosts);
  }
  return flatUs(split ? Algorithm::kTwoShot : Algorithm::kDirect, within, inner) +
         flatUs(Algorithm::kRing, between, outer);
}

}  // namespace

bool meetsAll(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::kOneShot || algorithm == Algorithm::kTwoShot || algorithm == Algorithm::kDirect;
}

bool packsAllRanks(Algorithm algorithm, Collective collective) noexcept {
  if (algorithm == Algorithm::kBruck) return true;
  const bool parts = collective == Collective::kReduceScatter || collective == Collective::kReduceScatterV;
  return algorithm == Algorithm::kHalving && !parts;
}

Work workOf(Algorithm algorithm, Collective collective, double bytes, const Machine& machine) {
  const double others = machine.ranks - 1;
  if (others <= 0) return {};
  switch (plainOf(collective)) {
    case Collective::kAllGather:
      return even(algorithm, machine, 1, others * bytes, 0);
    case Collective::kReduceScatter:
      return even(algorithm, machine, 1, others * bytes, others * bytes);
    case Collective::kBroadcast:
      return rooted(algorithm, false, bytes, machine);
    case Collective::kReduce:
      return rooted(algorithm, true, bytes, machine);
    case Collective::kGather:
      return partsRooted(algorithm, true, bytes, machine);
    case Collective::kScatter:
      return partsRooted(algorithm, false, bytes, machine);
    case Collective::kAllToAll:
      return allToAll(algorithm, bytes, machine);
    case Collective::kSendRecv:
      return oneMessage(bytes, machine);
    default:
      return allReduce(algorithm, bytes, machine);
  }
}

double predictUs(Algorithm algorithm, const Request& request, const Machine& machine) {
  const bool composed =
      algorithm == Algorithm::kHierarchical && machine.hosts > 1 && machine.ranksPerHost > 1 && machine.ranks > 1;
  return composed ? hierarchicalUs(request, machine) : flatUs(algorithm, request, machine);
}

}  // namespace tutti::plan

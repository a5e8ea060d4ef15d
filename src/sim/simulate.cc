#include "sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "sim/event_run.h"
#include "sim/refuse.h"
#include "sim/ring_form.h"
#include "sim/wiring.h"

namespace tutti::sim {
namespace {

using schedule::Algorithm;

// The builder itself: schedule::build() stops at the ranks that a communicator may have.
Schedule built(Algorithm algorithm, const schedule::Shape& shape, int rank) {
  if (shape.size <= kMostRanksOfRuntime) return schedule::build(algorithm, shape, rank);
  try {
    Schedule made = schedule::rowOf(algorithm).build(shape, rank);
    made.algorithm = algorithm;
    return made;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInternal) throw;
    refuse(fmt::format(
        "{} cannot be built for {} ranks, beyond those of the library's communicators: {}; simulate fewer nodes",
        nameOf(algorithm), shape.size, error.what()));
  }
}

// What is run, and how.
struct Job {
  std::span<const Schedule> schedules;
  const Network& network;
  kernels::Layout layout;
  bool folded = false, evened = false;
};

size_t roundsOf(const Job& job) {
  kernels::Layout layout = job.layout;
  layout.channels = static_cast<uint32_t>(job.network.cluster().channels);
  size_t most = 0;
  for (layout.channel = 0; layout.channel < layout.channels; ++layout.channel) most = std::max(most, layout.rounds());
  return most;
}

int lagOf(const Job& job) {
  int lag = 0;
  for (const Schedule& schedule : job.schedules) lag = std::max<int>(lag, schedule.maxLag);
  return lag;
}

// Times of which so much is left to add.
void describe(Result& result, const Outcome& outcome, double restUs, const Network& network, const Message& message) {
  const double ranUs = double(*std::ranges::max_element(outcome.finish)) / 1e6;
  result.us = ranUs + restUs;
  result.firstUs = result.us - (ranUs - double(*std::ranges::min_element(outcome.finish)) / 1e6);
  const auto most = std::ranges::max_element(outcome.busy);
  result.busiest = network.nameOf(static_cast<uint32_t>(most - outcome.busy.begin()));
  const double scale = double(result.rounds) / double(result.roundsRun);
  result.busiestShare = result.us > 0 ? std::min(1.0, double(*most) / 1e6 * scale / result.us) : 0;
  if (result.us > 0)
    result.busGBs =
        double(message.bytes) / (result.us * 1e3) * busFactor(message.collective, network.cluster().ranks());
  result.events = outcome.events;
}

// The first rounds fill the pipeline, the last ones drain it; those between them take equally long each. How long, the
// iterations tell in which every step has a round, but for the first of them, in which FIFOs still fill, and the last
// two, which may be shorter.
struct Steady {
  size_t begin, end;  // iterations
  size_t rounds() const noexcept { return end + 2; }
  double roundUs(const Outcome& outcome) const {
    return double(outcome.iterationEnd[end - 1] - outcome.iterationEnd[begin - 1]) / 1e6 / double(end - begin);
  }
};

// A step is about an event, or one for each slot that it sends.
double eventsOf(const Job& job, size_t rounds) {
  size_t events = 0;
  for (const Schedule& schedule : job.schedules)
    for (const schedule::Step& step : schedule.steps) {
      const auto sent = std::ranges::count_if(schedule.to(step), &schedule::Operand::isLink);
      events += std::max<size_t>(static_cast<size_t>(sent), 1);
    }
  return double(events) * double(rounds) * job.network.cluster().channels;
}

constexpr double kQuick = 1e7;  // events: a few seconds

// The more rounds, the less it matters where in a pattern of several rounds the look begins and ends: eight times the
// fewest, if these are quick to run and there are so many.
Steady steadyOf(const Job& job, size_t rounds) {
  const size_t depth = job.network.cluster().depth, lag = static_cast<size_t>(lagOf(job));
  const auto of = [&](size_t times) { return Steady{lag + times * depth, lag + 3 * times * depth}; };
  size_t times = 8;
  while (times > 1 && (of(times).rounds() >= rounds || eventsOf(job, of(times).rounds()) > kQuick)) times /= 2;
  return of(times);
}

// What would take far too long is not begun.
void checkLength(const Job& job, size_t rounds, uint64_t mostEvents) {
  const double events = eventsOf(job, rounds);
  if (events > double(mostEvents))
    refuse(
        fmt::format("{} on {} ranks takes about {:.3g} million events to simulate, and {:.3g} million are the most; "
                    "try fewer nodes, fewer channels or another algorithm",
                    nameOf(job.schedules[0].algorithm), job.schedules[0].size, events / 1e6, double(mostEvents) / 1e6));
}

Result run(const Job& job, const Message& message, const Ways& ways) {
  const Wiring wiring = wiringOf(job.schedules, job.network, job.folded);
  Result result;
  result.rounds = result.roundsRun = roundsOf(job);
  result.folded = job.folded;
  result.evened = job.evened;
  const Steady steady = steadyOf(job, result.rounds);
  const bool wanted = ways.extrapolate == Shortcut::kAlways ||
                      (ways.extrapolate == Shortcut::kWhereNeeded && eventsOf(job, result.rounds) > kQuick);
  const bool partly = wanted && result.rounds > steady.rounds();
  if (partly) result.roundsRun = steady.rounds();
  checkLength(job, result.roundsRun, ways.mostEvents);
  const size_t skipped = result.rounds - result.roundsRun;
  const Rounds which{partly ? result.roundsRun / 2 : SIZE_MAX, skipped};
  Outcome outcome = runEvents(job.schedules, wiring, job.network, job.layout, which, {ways.mostEvents});
  describe(result, outcome, partly ? double(skipped) * steady.roundUs(outcome) : 0, job.network, message);
  if (!partly) result.bytes = std::move(outcome.bytes);
  return result;
}

// All hosts alike: their segments too, which the message's last ones may fall short of.
Job jobOfOneHost(std::span<const Schedule> schedules, const Network& network, const Message& message) {
  Job job{schedules, network, layoutOf(message, schedules[0], network.cluster().slotBytes), true};
  if (!job.layout.perRank) {
    const size_t even = job.layout.stride * job.layout.segments;
    job.evened = even != job.layout.total;
    job.layout.total = even;
  }
  return job;
}

std::optional<Result> inRingForm(const Job& job, const Message& message) {
  std::optional<Outcome> outcome = ringOutcome(job.schedules[0], job.network, job.layout);
  if (!outcome) return std::nullopt;
  Result result;
  result.rounds = result.roundsRun = roundsOf(job);
  result.form = true;
  result.evened = job.evened;
  describe(result, *outcome, 0, job.network, message);
  result.bytes = std::move(outcome->bytes);
  return result;
}

// Host 0's schedules where every host does the same as host 0, as far as a look at the next, one in the middle and the
// last tells, and the links of host 0 close among themselves; else none.
std::vector<Schedule> hostForAll(Algorithm algorithm, const schedule::Shape& shape, const Network& network) {
  const Cluster& cluster = network.cluster();
  if (hasRoot(shape.collective)) return {};
  std::vector<Schedule> first;
  for (int rank = 0; rank < cluster.ranksPerHost; ++rank) {
    first.push_back(built(algorithm, shape, rank));
    for (const int host : {1 % cluster.hosts, cluster.hosts / 2, cluster.hosts - 1}) {
      const int on = host * cluster.ranksPerHost;
      if (on != 0 && !sameButFor(first.back(), built(algorithm, shape, rank + on), on)) return {};
    }
  }
  if (!wiringOf(first, network, true).complete()) return {};
  return first;
}

// The answer that one host's schedules give for all, where they can.
std::optional<Result> byOneHost(Algorithm algorithm, const schedule::Shape& shape, const Network& network,
                                const Message& message, const Ways& ways) {
  const std::vector<Schedule> first = hostForAll(algorithm, shape, network);
  if (first.empty()) return std::nullopt;
  const Job job = jobOfOneHost(first, network, message);
  if (ways.ringForm != Shortcut::kNever)
    if (std::optional<Result> result = inRingForm(job, message)) return result;
  if (network.cluster().hosts == 1 || ways.ringForm == Shortcut::kAlways) return std::nullopt;
  return run(job, message, ways);
}

size_t bytesOf(const Schedule& schedule) {
  return sizeof(Schedule) + schedule.steps.size() * sizeof(schedule::Step) +
         schedule.operands.size() * sizeof(schedule::Operand);
}

// Every rank's, where there is memory and time for them.
std::vector<Schedule> everyRank(Algorithm algorithm, const schedule::Shape& shape, size_t mostBytes) {
  if (!shape.groupOf.empty() && shape.size > kMostRanksOfRuntime)
    refuse(
        fmt::format("each rank's part of {} is built from where all ranks are, which takes too long beyond {} ranks; "
                    "simulate fewer nodes",
                    nameOf(algorithm), kMostRanksOfRuntime));
  std::vector<Schedule> all;
  size_t bytes = 0;
  for (int rank = 0; rank < shape.size; ++rank) {
    all.push_back(built(algorithm, shape, rank));
    bytes += bytesOf(all.back());
    if (bytes > mostBytes)
      refuse(
          fmt::format("the schedules of {} for {} ranks take more than {} MB, and no host stands for all others; "
                      "simulate fewer nodes",
                      nameOf(shape.collective), shape.size, mostBytes >> 20));
  }
  return all;
}

// Ports carry more to the next of a row, along which some algorithms send alone.
Cluster asSeenBy(Algorithm algorithm, Cluster cluster) {
  if (schedule::rowOf(algorithm).alongTheRow && cluster.ringGBs > 0)
    cluster.portGBs = cluster.ringGBs, cluster.localUs = cluster.ringUs;
  return cluster;
}

}  // namespace

void check(Algorithm algorithm, const Cluster& cluster, const Message& message) {
  const schedule::AlgorithmRow& row = schedule::rowOf(algorithm);
  if (!row.has(message.collective)) {
    std::string names;
    for (const Algorithm each : schedule::algorithmsFor(message.collective))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", nameOf(each));
    refuse(fmt::format("{} has no algorithm {}; choose one of: {}", nameOf(message.collective), row.name, names));
  }
  if (cluster.ranks() < 2) refuse("one rank alone has nothing to send: simulate more nodes, or more ranks of each");
  if (hasRoot(message.collective) && (message.root < 0 || message.root >= cluster.ranks()))
    refuse(fmt::format("root {} is not one of {} ranks", message.root, cluster.ranks()));
  if (row.linksToAll && cluster.ranks() > kMostRanksOfRuntime)
    refuse(fmt::format(
        "{} needs a link to every other rank, which a schedule has no room for beyond {} ranks; simulate fewer nodes",
        row.name, kMostRanksOfRuntime));
}

schedule::Shape shapeOf(Algorithm algorithm, const Cluster& cluster, const Message& message) {
  schedule::Shape shape;
  shape.collective = message.collective;
  shape.size = cluster.ranks();
  shape.root = message.root;
  shape.depth = static_cast<int>(cluster.depth);
  if (algorithm != Algorithm::kHierarchical) return shape;
  for (int rank = 0; rank < shape.size; ++rank) shape.groupOf.push_back(rank / cluster.ranksPerHost);
  return shape;
}

Result simulate(std::span<const Schedule> schedules, const Cluster& cluster, const Message& message, const Ways& ways) {
  if (schedules.size() != static_cast<size_t>(cluster.ranks()) || schedules.empty())
    refuse(fmt::format("{} schedules for {} ranks: give one for each", schedules.size(), cluster.ranks()));
  const Network network(asSeenBy(schedules[0].algorithm, cluster));
  const Job job{schedules, network, layoutOf(message, schedules[0], cluster.slotBytes)};
  return run(job, message, ways);
}

Result simulate(Algorithm algorithm, const Cluster& given, const Message& message, const Ways& ways) {
  const Cluster cluster = asSeenBy(algorithm, given);
  const Network network(cluster);
  check(algorithm, cluster, message);
  const schedule::Shape shape = shapeOf(algorithm, cluster, message);
  const bool tooMany = cluster.ranks() > kMostRanksInFull;
  if (ways.fold == Shortcut::kAlways || (ways.fold == Shortcut::kWhereNeeded && tooMany)) {
    if (std::optional<Result> result = byOneHost(algorithm, shape, network, message, ways)) return *result;
    if (ways.fold == Shortcut::kAlways)
      refuse(fmt::format("no host stands for all others in {} of {}", nameOf(algorithm), nameOf(message.collective)));
  }
  return simulate(everyRank(algorithm, shape, ways.mostBytes), cluster, message, ways);
}

}  // namespace tutti::sim

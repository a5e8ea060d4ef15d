#include "perf/worker.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "perf/failure.h"
#include "perf/verify.h"

namespace tutti::perf {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

tuttiRedOp_t plainOperator(Operator op) {
  switch (op) {
    case Operator::kProd:
      return tuttiProd;
    case Operator::kMax:
      return tuttiMax;
    case Operator::kMin:
      return tuttiMin;
    case Operator::kAvg:
      return tuttiAvg;
    case Operator::kBitAnd:
      return tuttiBitAnd;
    case Operator::kBitOr:
      return tuttiBitOr;
    case Operator::kBitXor:
      return tuttiBitXor;
    default:
      return tuttiSum;
  }
}

// Successive operations use successive parts of the buffers, so that caches do not flatter small sizes.
size_t shiftOf(const Half& half, size_t operation) { return half.bytes * (operation % half.parts); }

}  // namespace

Worker::Worker(const Collective& collective, const Options& options, const std::vector<Seat>& seats)
    : collective_(collective), options_(options), members_(seats.size()) {
  for (size_t i = 0; i < seats.size(); ++i) {
    members_[i].comm = seats[i].comm;
    members_[i].control = seats[i].control;
  }
}

void Worker::prepare() {
  const auto kind = static_cast<MemoryKind>(options_.memoryKind);
  const size_t slack = options_.unalign * sizeof(double);
  for (Member& member : members_) {
    require(tuttiCommUserRank(member.comm, &member.rank), "tuttiCommUserRank", -1, member.comm);
    require(tuttiCommCount(member.comm, &ranks_), "tuttiCommCount", member.rank, member.comm);
    require(tuttiCommDevice(member.comm, &member.device), "tuttiCommDevice", member.rank, member.comm);
    if (!options_.nullStream) makeStream(member);
    for (auto* buffer : {&member.send, &member.receive})
      *buffer = std::make_unique<Buffer>(options_.maxBytes, slack, kind, member.comm, member.rank, member.device);
  }
}

void Worker::makeStream(Member& member) const {
  if (member.device >= 0)
    member.stream = device::newStream(member.device);
  else
    require(tuttiStreamCreate(&member.stream, 0), "tuttiStreamCreate", member.rank, member.comm);
}

void Worker::dropStream(Member& member) const {
  const tuttiStream_t stream = std::exchange(member.stream, nullptr);
  if (stream == nullptr) return;
  if (member.device >= 0)
    device::destroy({member.device, stream});
  else
    require(tuttiStreamDestroy(stream), "tuttiStreamDestroy", member.rank, member.comm);
}

void Worker::leave() {
  for (Member& member : members_) {
    if (member.mulSum)
      require(tuttiRedOpDestroy(*member.mulSum, member.comm), "tuttiRedOpDestroy", member.rank, member.comm);
    member.mulSum.reset();
    dropStream(member);
    member.send.reset();
    member.receive.reset();
    const tuttiComm_t control = std::exchange(member.control, nullptr);
    const tuttiComm_t comm = std::exchange(member.comm, nullptr);
    require(tuttiCommDestroy(comm), "tuttiCommDestroy", member.rank, nullptr);
    if (control != comm) require(tuttiCommDestroy(control), "tuttiCommDestroy", member.rank, nullptr);
  }
}

void Worker::abort() noexcept {
  for (Member& member : members_) {
    const tuttiComm_t control = std::exchange(member.control, nullptr);
    const tuttiComm_t comm = std::exchange(member.comm, nullptr);
    if (comm != nullptr) tuttiCommAbort(comm);
    if (control != nullptr && control != comm) tuttiCommAbort(control);
  }
}

void Worker::select(tuttiDataType_t type, Operator op) {
  const size_t offset = options_.unalign * sizeOf(type);
  for (Member& member : members_) {
    member.send->startAt(offset);
    member.receive->startAt(offset);
    member.inputs = std::make_unique<Inputs>(collective_.reduces ? Inputs::reduction(type, op, ranks_, member.rank)
                                                                 : Inputs::movement(type));
    if (member.mulSum)
      require(tuttiRedOpDestroy(*member.mulSum, member.comm), "tuttiRedOpDestroy", member.rank, member.comm);
    member.mulSum.reset();
    member.op = plainOperator(op);
    if (!collective_.reduces || op != Operator::kMulSum) continue;
    uint64_t factor = factorOf(type, member.rank);
    tuttiRedOp_t made{};
    require(tuttiRedOpCreatePreMulSum(&made, &factor, type, tuttiScalarHostImmediate, member.comm),
            "tuttiRedOpCreatePreMulSum", member.rank, member.comm);
    member.mulSum = member.op = made;
  }
}

Layout Worker::layoutOf(const Job& job) const { return collective_.layout(job.bytes / sizeOf(job.type), ranks_); }

Place Worker::placeOf(const Member& member, const Job& job) const {
  return {member.rank, ranks_, std::max(job.root, 0)};
}

std::pair<size_t, size_t> Worker::shownSize(const Job& job) const {
  const Layout layout = layoutOf(job);
  return {std::max(layout.send, layout.receive) * sizeOf(job.type), layout.parameter};
}

void Worker::wait() {
  for (const Member& member : members_) waitFor(member);
}

void Worker::waitFor(const Member& member) const {
  if (member.device >= 0) {
    device::synchronize({member.device, member.stream});
    // A stream knows nothing of what a rank missed on it.
    tuttiResult_t state = tuttiSuccess;
    require(tuttiCommGetAsyncError(member.comm, &state), "tuttiCommGetAsyncError", member.rank, member.comm);
    require(state, collective_.call, member.rank, member.comm);
  } else if (member.stream != nullptr) {
    require(tuttiStreamSynchronize(member.stream), collective_.call, member.rank, member.comm);
  }
}

Half Worker::halfOf(const Job& job, bool inPlace) const {
  const Layout layout = layoutOf(job);
  const size_t element = sizeOf(job.type), bytes = std::max(layout.send, layout.receive) * element;
  return {job, inPlace, layout, element, bytes, bytes == 0 ? 1 : options_.maxBytes / bytes};
}

Call Worker::callOf(const Member& member, const Half& half, size_t shift) const {
  const Layout& layout = half.layout;
  const size_t step = static_cast<size_t>(member.rank) * half.element;
  std::byte* receive = member.receive->data() + shift;
  const std::byte* send = half.inPlace ? receive + layout.sendStep * step : member.send->data() + shift;
  if (half.inPlace) receive += layout.receiveStep * step;
  const Place place = placeOf(member, half.job);
  return {send, receive, layout.parameter, half.job.type, member.op, place, member.comm, member.stream};
}

void Worker::runOnce(const Member& member, const Half& half, size_t shift) const {
  require(collective_.run(callOf(member, half, shift)), collective_.call, member.rank, member.comm);
}

// As many as there are parts of the buffers to use in turn, up to a number; none runs twice in a group.
void Worker::makeReady(const Half& half) {
  constexpr size_t kMost = 64;
  const size_t parts =
      std::min(kMost, static_cast<size_t>(options_.iterations) * static_cast<size_t>(options_.aggregated));
  const size_t wanted = std::max(static_cast<size_t>(options_.aggregated), std::clamp<size_t>(half.parts, 1, parts));
  for (Member& member : members_) member.ready.emplace(member.stream != nullptr || member.device >= 0);
  const bool grouped = members_.size() > 1;
  for (size_t i = 0; i < wanted; ++i) {
    if (grouped) require(tuttiGroupStart(), "tuttiGroupStart", members_.front().rank, nullptr);
    for (Member& member : members_) {
      const Call call = callOf(member, half, shiftOf(half, i));
      require(member.ready->make(collective_, call), collective_.call, member.rank, member.comm);
    }
    if (grouped) require(tuttiGroupEnd(), collective_.call, members_.front().rank, members_.front().comm);
  }
  wait();
}

void Worker::iterate(const Half& half, int iteration) {
  const bool grouped = members_.size() > 1 || options_.aggregated > 1;
  const Member& front = members_.front();
  if (grouped) require(tuttiGroupStart(), "tuttiGroupStart", front.rank, nullptr);
  const auto aggregated = static_cast<size_t>(options_.aggregated), first = static_cast<size_t>(iteration) * aggregated;
  for (size_t i = 0; i < aggregated; ++i) {
    const size_t shift = shiftOf(half, first + i);
    for (const Member& member : members_) {
      if (member.ready)
        require(member.ready->start(first + i), collective_.call, member.rank, member.comm);
      else
        runOnce(member, half, shift);
    }
  }
  if (grouped) require(tuttiGroupEnd(), collective_.call, front.rank, front.comm);
}

void Worker::warmUp(const Job& job) {
  const Half half = halfOf(job, false);
  for (int i = 0; i < options_.warmups; ++i) iterate(half, i);
  wait();
}

Worker::Timing Worker::runTimed(const Job& job, bool inPlace) {
  const Half half = halfOf(job, inPlace);
  const bool barrierUntimed = options_.blocking == Blocking::kEachBarrierUntimed;
  const bool single = options_.percentiles || barrierUntimed;
  const bool waitEach = options_.blocking != Blocking::kAtEnd || options_.percentiles;
  Timing timing;
  double alone = 0;
  if (options_.persistent) makeReady(half);
  barrier();
  const auto start = Clock::now();
  for (int i = 0; i < options_.iterations; ++i) {
    const auto before = single ? Clock::now() : start;
    iterate(half, i);
    if (waitEach) wait();
    if (options_.blocking == Blocking::kEachWithBarrier) barrier();
    if (!single) continue;
    const double seconds = secondsSince(before);
    alone += seconds;
    timing.iterations.push_back(seconds / options_.aggregated);
    if (barrierUntimed) barrier();
  }
  const double returned = secondsSince(start);
  wait();
  const double whole = barrierUntimed ? alone : (options_.cpuTime ? returned : secondsSince(start));
  timing.seconds = whole / options_.iterations / options_.aggregated;
  // The library tells of its last operation only, and that was a barrier.
  if (options_.blocking == Blocking::kEachWithBarrier || barrierUntimed) {
    iterate(half, 0);
    wait();
  }
  for (Member& member : members_) member.ready.reset();
  return timing;
}

// All iterations are captured once, and what is timed is the replay.
Worker::Timing Worker::runGraph(const Job& job, bool inPlace) {
  const Half half = halfOf(job, inPlace);
  std::vector<device::Queue> queues;
  for (const Member& member : members_) queues.push_back({member.device, member.stream});
  device::Graph graph(queues, [&] {
    for (int i = 0; i < options_.iterations; ++i) iterate(half, i);
  });
  wait();
  barrier();
  const auto start = Clock::now();
  for (int i = 0; i < options_.graphLaunches; ++i) graph.launch();
  const double returned = secondsSince(start);
  wait();
  Timing timing;
  const double whole = options_.cpuTime ? returned : secondsSince(start);
  timing.seconds = whole / options_.graphLaunches / options_.iterations / options_.aggregated;
  return timing;
}

void Worker::noteUse(const Layout& layout, Measurement& measurement) const {
  const Member& member = members_.front();
  tuttiCommStats_t stats{};
  stats.size = sizeof stats;
  require(tuttiCommGetStats(member.comm, &stats), "tuttiCommGetStats", member.rank, member.comm);
  // Nothing is planned where there is nothing to do: the last algorithm is then another call's.
  measurement.algorithm = layout.parameter == 0 ? "none" : stats.lastAlgorithm;
  measurement.transports = stats.lastTransports;
}

Measurement Worker::measure(const Job& job, bool inPlace) {
  const Timing timing = options_.graphLaunches > 0 ? runGraph(job, inPlace) : runTimed(job, inPlace);
  Measurement measurement;
  noteUse(layoutOf(job), measurement);
  const double seconds = averaged(timing.seconds);
  measurement.microseconds = seconds * 1e6;
  measurement.algorithmGBs = static_cast<double>(shownSize(job).first) / seconds * 1e-9;
  measurement.busGBs = measurement.algorithmGBs * collective_.busFactor(ranks_);
  if (options_.percentiles) {
    measurement.iterations = slowest(timing.iterations);
    for (double& time : measurement.iterations) time *= 1e6;
  }
  if (options_.checks > 0) measurement.wrong = check(job, inPlace);
  return measurement;
}

int64_t Worker::check(const Job& job, bool inPlace) {
  const Half half = halfOf(job, inPlace);
  int64_t wrong = 0;
  for (int i = 0; i < options_.checks && wrong == 0; ++i) wrong = checkOnce(half);
  return wrong;
}

int64_t Worker::checkOnce(const Half& half) {
  const uint64_t seed = ++checkNumber_;
  std::vector<Verifier> verifiers;
  for (const Member& member : members_) {
    verifiers.emplace_back(collective_, half.layout, half.job.type, placeOf(member, half.job), *member.inputs, seed,
                           half.inPlace);
    verifiers.back().prepare(*member.send, *member.receive);
  }
  barrier();
  const bool grouped = members_.size() > 1;
  if (grouped) require(tuttiGroupStart(), "tuttiGroupStart", members_.front().rank, nullptr);
  for (const Member& member : members_) runOnce(member, half, 0);
  if (grouped) require(tuttiGroupEnd(), collective_.call, members_.front().rank, members_.front().comm);
  wait();
  std::vector<double> wrong;
  for (size_t i = 0; i < members_.size(); ++i) {
    verifiers[i].collect(*members_[i].send, *members_[i].receive);
    if (options_.plantError) verifiers[i].plantError(*members_[i].receive);
    wrong.push_back(static_cast<double>(verifiers[i].countWrong(*members_[i].send, *members_[i].receive)));
  }
  return static_cast<int64_t>(agree(wrong, tuttiSum));
}

}  // namespace tutti::perf

#include "comm/plans.h"

#include <algorithm>

#include "base/slots.h"
#include "kernels/cut.h"
#include "process/log.h"
#include "proof/verify.h"

namespace tutti::comm {

Plans::Plans(int rank, int size, const Config& config, plan::ClusterModel machine, Placement placement, Links& links,
             engine::Crowd& crowd)
    : rank_(rank),
      size_(size),
      config_(config),
      machine_(machine),
      placement_(std::move(placement)),
      links_(links),
      crowd_(crowd),
      sends_(static_cast<size_t>(size)),
      receives_(static_cast<size_t>(size)) {}

PlanQuestion Plans::questionOf(const Call& call) const noexcept {
  return PlanQuestion::of(call.collective, call.root, call.planBytes(size_), call.wish.bits(),
                          isReproducible(config_, call));
}

BoundPlan& Plans::find(const Call& call) {
  if (call.collective == Collective::kSendRecv) return message(call);
  const PlanQuestion question = questionOf(call);
  BoundPlan& plan = collectives_.find(question, [&]() -> BoundPlan& { return choose(call, question.bytes); });
  last_.store(plan.schedule.algorithm, std::memory_order_relaxed);
  return plan;
}

BoundPlan* Plans::recall(const Call& call) noexcept {
  if (call.collective == Collective::kSendRecv)
    return (call.sends ? sends_ : receives_)[static_cast<size_t>(call.root)].get();
  return collectives_.recent(questionOf(call));
}

schedule::Request Plans::requestOf(const Call& call) const noexcept {
  return {call.collective, call.planBytes(size_), isReproducible(config_, call)};
}

schedule::Allowed Plans::allowedOf(const Call& call) const {
  return call.wish.algorithmsFrom(config_.algorithms.of(call.collective));
}

plan::Plan Plans::weigh(const Call& call) const {
  const schedule::Request request = requestOf(call);
  return plan::choose(request, machine_, allowedOf(call), call.wish.channelsFrom(config_.channels.of(call.collective)));
}

plan::Choice Plans::foresee(const Call& call) const { return weigh(call).best; }

BoundPlan& Plans::choose(const Call& call, size_t bytes) {
  const plan::Choice best = foresee(call);
  return collectives_.made({call.collective, best.algorithm, call.root, best.channels},
                           [&] { return makeChosen(call, bytes, best); });
}

// Of a broadcast a ring makes a chain. A reduce's is by the numbers, as its bits are those of other engines.
schedule::Shape Plans::shapeOf(const Call& call, schedule::Algorithm algorithm) const {
  const auto& [groups, chain, bothWays, coreOf] = placement_;
  const bool alongCores =
      algorithm == schedule::Algorithm::kRing && call.collective == Collective::kBroadcast && !chain.empty();
  schedule::Shape shape{call.collective, size_, call.root, {}};
  if (alongCores) {
    shape.within = chain, shape.bothWays = bothWays;
    return shape;
  }
  const bool onCores = algorithm == schedule::Algorithm::kHierarchical && !coreOf.empty();
  shape.groupOf = onCores ? coreOf : groups;
  return shape;
}

std::unique_ptr<BoundPlan> Plans::makeChosen(const Call& call, size_t bytes, const plan::Choice& choice) {
  const schedule::Shape shape = shapeOf(call, choice.algorithm);
  const schedule::Allowed allowed = allowedOf(call);
  if (schedule::allowedFor(requestOf(call), allowed) != allowed)
    log::debug("{} is not made{} by {}; the plan chooses", nameOf(call.collective),
               isReproducible(config_, call) ? " in the order of the ranks" : "", textOf(allowed));
  log::debug("{} of {} bytes: {}", nameOf(call.collective), bytes, plan::describe(choice));
  auto made = make(schedule::build(choice.algorithm, shape, rank_), choice.channels);
  if (config_.provesPlans) prove(choice.algorithm, shape, link::Edge{}.depth);
  return made;
}

// TUTTI_VERIFY=1: what is about to run is proved first, for this size, root and grouping.
void Plans::prove(schedule::Algorithm algorithm, const schedule::Shape& shape, uint32_t depth) const {
  std::vector<schedule::Schedule> all;
  for (int rank = 0; rank < size_; ++rank) all.push_back(schedule::build(algorithm, shape, rank));
  const auto verdict = proof::verify(all, static_cast<int>(depth));
  if (!verdict.ok)
    throw Error(ErrorCode::kInternal,
                fmt::format("the schedule of {} by {} on {} ranks is wrong: {}", nameOf(shape.collective),
                            nameOf(algorithm), size_, verdict.problems.front()));
  log::info("proved {} by {} on {} ranks", nameOf(shape.collective), nameOf(algorithm), size_);
}

BoundPlan& Plans::message(const Call& call) {
  auto& bound = (call.sends ? sends_ : receives_)[static_cast<size_t>(call.root)];
  if (!bound)
    bound = make(
        call.sends ? schedule::buildSend(rank_, size_, call.root) : schedule::buildReceive(rank_, size_, call.root), 1);
  last_.store(bound->schedule.algorithm, std::memory_order_relaxed);
  return *bound;
}

size_t chunkBytesOf(const schedule::Schedule& schedule, uint32_t slotBytes) {
  const size_t bytes = kernels::chunkBytes(slotBytes, schedule.maxSpan);
  if (bytes < kLargestElement)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{} by {} on {} ranks puts {} segments into a slot of {} bytes, which leaves less than an "
                            "element for each; choose another algorithm (TUTTI_ALGO, or the configuration)",
                            nameOf(schedule.collective), nameOf(schedule.algorithm), schedule.size, schedule.maxSpan,
                            slotBytes));
  return bytes;
}

// All ranks cut alike, whatever their links are: by what they all know.
engine::LaneWork workOf(const Call& call, const link::Fingerprint& mark, const BoundPlan& plan,
                        uint32_t channel) noexcept {
  engine::LaneWork work =
      toWork(call, mark, plan.schedule, plan.chunkBytes, channel, static_cast<uint32_t>(plan.bindings.size()));
  if (call.tables || work.layout.longestShare() > work.layout.chunk)
    work.layout.chunk = plan.longChunkBytes / work.elementBytes;
  return work;
}

std::unique_ptr<BoundPlan> Plans::make(schedule::Schedule schedule, int channels) {
  auto made = std::make_unique<BoundPlan>();
  made->schedule = std::move(schedule);
  made->bindings.resize(static_cast<size_t>(channels));
  made->lanes.resize(static_cast<size_t>(channels));
  made->slotBytes = link::Edge{}.slotBytes;
  made->chunkBytes = chunkBytesOf(made->schedule, made->slotBytes);
  made->longChunkBytes = kernels::chunkBytes(made->slotBytes - slots::kLeftFree, made->schedule.maxSpan);
  if (made->longChunkBytes < kLargestElement) made->longChunkBytes = made->chunkBytes;
  if (made->schedule.depth > link::Edge{}.depth)
    throw Error(ErrorCode::kInternal,
                fmt::format("a schedule of {} needs links {} slots deep; they have {}",
                            nameOf(made->schedule.collective), made->schedule.depth, link::Edge{}.depth));
  memoryBytes_.fetch_add(made->schedule.steps.size() * sizeof(schedule::Step) +
                             made->schedule.operands.size() * sizeof(schedule::Operand) +
                             size_t{made->schedule.scratches} * made->slotBytes * made->bindings.size(),
                         std::memory_order_relaxed);
  return made;
}

bool Plans::bind(BoundPlan& plan) {
  const schedule::Schedule& schedule = plan.schedule;
  const bool isMessage = schedule.collective == Collective::kSendRecv;
  bool complete = true;
  const auto find = [&](int peer, int channel) {
    link::Connection* connection = links_.find(peer, channel);
    if (connection == nullptr) plan.waitingFor = peer;
    complete = complete && connection;
    return connection;
  };
  for (size_t c = 0; c < plan.bindings.size(); ++c) {
    engine::Binding& binding = plan.bindings[c];
    binding = {};
    binding.schedule = &schedule;
    binding.singleCopy = config_.transportSettings.singleCopy;
    binding.directSlots = &directSlots_;
    binding.sharedSlots = links_.sharedSlots();
    binding.crowd = &crowd_;
    binding.fetched = isMessage ? nullptr : &fetched_;
    const int channel = isMessage ? Links::kMessageChannel : static_cast<int>(c);
    for (const int peer : schedule.inPeers) {
      link::Connection* connection = find(peer, channel);
      binding.ins.push_back(connection ? &connection->recv : nullptr);
    }
    for (const int peer : schedule.outPeers) {
      link::Connection* connection = find(peer, channel);
      binding.outs.push_back(connection ? &connection->send : nullptr);
    }
    if (!complete) continue;
    memoryBytes_.fetch_add(binding.prepare(plan.slotBytes), std::memory_order_relaxed);
  }
  plan.bound = complete;
  return complete;
}

}  // namespace tutti::comm

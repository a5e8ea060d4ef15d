#include "comm/plans.h"

#include <algorithm>

#include "base/log.h"
#include "base/settings.h"
#include "schedule/verify.h"

namespace tutti::comm {

Plans::Plans(int rank, int size, const Config& config, plan::Machine machine, std::vector<int> groupOf, Links& links)
    : rank_(rank),
      size_(size),
      config_(config),
      machine_(machine),
      groupOf_(std::move(groupOf)),
      links_(links),
      proves_(settings::isOn("TUTTI_VERIFY")),
      sends_(static_cast<size_t>(size)),
      receives_(static_cast<size_t>(size)) {}

BoundPlan& Plans::find(const Call& call) {
  if (call.collective == Collective::kSendRecv) return message(call);
  const size_t bytes = call.planBytes(size_);
  const uint64_t key = static_cast<uint64_t>(call.collective) << 32 | static_cast<uint32_t>(call.root);
  const uint64_t hash = (key * 0x9e3779b97f4a7c15 ^ bytes) * 0xbf58476d1ce4e5b9;
  Slot& slot = recent_[hash >> 56];
  if (slot.plan == nullptr || slot.key != key || slot.bytes != bytes) slot = {key, bytes, &choose(call, bytes)};
  last_.store(slot.plan->schedule.algorithm, std::memory_order_relaxed);
  return *slot.plan;
}

std::optional<schedule::Algorithm> Plans::forcedFor(Collective collective) const {
  if (!config_.algorithm) return std::nullopt;
  const auto available = schedule::algorithmsFor(collective);
  if (std::find(available.begin(), available.end(), *config_.algorithm) != available.end()) return config_.algorithm;
  log::debug("{} has no algorithm {}; the plan chooses", nameOf(collective), nameOf(*config_.algorithm));
  return std::nullopt;
}

BoundPlan& Plans::choose(const Call& call, size_t bytes) {
  const plan::Plan plan =
      plan::choose({call.collective, bytes}, machine_, forcedFor(call.collective), config_.channels);
  const Key key{call.collective, plan.best.algorithm, call.root, plan.best.channels};
  auto& bound = plans_[key];
  if (!bound) {
    const schedule::Shape shape{call.collective, size_, call.root, groupOf_};
    log::debug("{} of {} bytes: {} over {} channel(s), predicted {:.1f} us", nameOf(call.collective), bytes,
               nameOf(plan.best.algorithm), plan.best.channels, plan.best.predictedUs);
    bound = make(schedule::build(plan.best.algorithm, shape, rank_), plan.best.channels);
    if (proves_) proveIfAsked(plan.best.algorithm, shape, link::Edge{}.depth);
  }
  return *bound;
}

// TUTTI_VERIFY=1: what is about to run is proved first, for this size, root and grouping.
void Plans::proveIfAsked(schedule::Algorithm algorithm, const schedule::Shape& shape, uint32_t depth) const {
  std::vector<schedule::Schedule> all;
  for (int rank = 0; rank < size_; ++rank) all.push_back(schedule::build(algorithm, shape, rank));
  const auto verdict = schedule::verify(all, static_cast<int>(depth));
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

std::unique_ptr<BoundPlan> Plans::make(schedule::Schedule schedule, int channels) {
  auto made = std::make_unique<BoundPlan>();
  made->schedule = std::move(schedule);
  made->bindings.resize(static_cast<size_t>(channels));
  made->lanes.resize(static_cast<size_t>(channels));
  made->slotBytes = link::Edge{}.slotBytes;
  made->chunkBytes = made->slotBytes / made->schedule.maxSpan;
  if (made->chunkBytes >= 64) made->chunkBytes = made->chunkBytes / 64 * 64;
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
    const int channel = isMessage ? Links::kMessageChannel : static_cast<int>(c);
    for (const int peer : schedule.inPeers) {
      link::Connection* connection = find(peer, channel);
      binding.ins.push_back(connection ? &connection->recv : nullptr);
    }
    for (const int peer : schedule.outPeers) {
      link::Connection* connection = find(peer, channel);
      binding.outs.push_back(connection ? &connection->send : nullptr);
    }
    if (complete) binding.prepare(plan.slotBytes);
  }
  plan.bound = complete;
  return complete;
}

}  // namespace tutti::comm

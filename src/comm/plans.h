// The plans of one communicator: chosen, built and bound to links once, then looked up.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "engine/lane.h"
#include "plan/plan.h"
#include "schedule/algorithm.h"
#include "team/call.h"
#include "team/cluster.h"
#include "team/config.h"
#include "team/links.h"
#include "team/plan_cache.h"

namespace tutti::comm {

// What calls of one plan differ in, beside their buffers and their number, where they are simple ones: lanes that have
// just run one run the next as it is.
struct RepeatKey {
  size_t count = 0;
  uint32_t kind = 0;  // 0: of no such call

  static RepeatKey of(const Call& call) noexcept {
    if (call.tables || call.tag != 0 || call.op == ReduceOp::kPreMulSum) return {};
    return {call.count, 1u << 16 | static_cast<uint32_t>(call.op) << 8 | static_cast<uint32_t>(call.type)};
  }
  bool repeats(const RepeatKey& last) const noexcept { return kind != 0 && kind == last.kind && count == last.count; }
};

// A schedule bound to its links, with a lane a channel. Used by one call at a time: the communicator's queues see
// to it.
struct BoundPlan {
  schedule::Schedule schedule;
  uint32_t slotBytes = 0;
  size_t chunkBytes = 0;      // of one segment in a slot: whole cache lines where the slot is wide enough
  size_t longChunkBytes = 0;  // the same of a message of several slots
  bool bound = false;
  int waitingFor = -1;                    // while it is not bound: a peer whose link is still missing
  std::vector<engine::Binding> bindings;  // one a channel
  std::vector<engine::Lane> lanes;
  RepeatKey last;                // of the call that its lanes started for
  link::Fingerprint lastMark;    // and of that, as slots carry it, but for its number
  const Call* lastOf = nullptr;  // and of that, if it is kept, which says all there is to ask of it
};

// Bytes of one segment that a slot carries. Throws Error(kInvalidUsage) where that is less than an element.
size_t chunkBytesOf(const schedule::Schedule& schedule, uint32_t slotBytes);

// A lane's part of a call.
engine::LaneWork workOf(const Call& call, const link::Fingerprint& mark, const BoundPlan& plan,
                        uint32_t channel) noexcept;

class Plans {
 public:
  Plans(int rank, int size, const Config& config, plan::ClusterModel machine, Placement placement, Links& links,
        engine::Crowd& crowd);

  // The plan of a call; its links may still have to be made. Throws Error. Collectives: one thread at a time, in turn;
  // messages: one thread at a time for each peer and direction.
  BoundPlan& find(const Call& call);
  // The plan of a call that was asked for lately; null: none was. As find(), but for what it would make.
  BoundPlan* recall(const Call& call) noexcept;
  // A call runs by it that has not asked for it now.
  void uses(const BoundPlan& plan) noexcept { last_.store(plan.schedule.algorithm, std::memory_order_relaxed); }
  // True once all links of the plan stand; helps them along otherwise. Throws Error.
  bool bind(BoundPlan& plan);

  // All that choose() weighs for a collective of so many bytes, and what it would take. Any thread.
  plan::Plan weigh(const Call& call) const;
  plan::Choice foresee(const Call& call) const;
  const plan::Profile& prices() const noexcept { return machine_.prices; }
  const Placement& placement() const noexcept { return placement_; }

  // Any thread.
  schedule::Algorithm lastAlgorithm() const noexcept { return last_.load(std::memory_order_relaxed); }
  size_t memoryBytes() const noexcept { return memoryBytes_.load(std::memory_order_relaxed); }
  // Pieces that peers have read where they lay in this process's window.
  uint64_t directSlots() const noexcept { return directSlots_.load(std::memory_order_relaxed); }

 private:
  using Key = std::tuple<Collective, schedule::Algorithm, int, int>;  // collective, algorithm, root, channels

  PlanQuestion questionOf(const Call& call) const noexcept;
  schedule::Request requestOf(const Call& call) const noexcept;
  schedule::Allowed allowedOf(const Call& call) const;
  BoundPlan& choose(const Call& call, size_t bytes);
  schedule::Shape shapeOf(const Call& call, schedule::Algorithm algorithm) const;
  BoundPlan& message(const Call& call);
  std::unique_ptr<BoundPlan> makeChosen(const Call& call, size_t bytes, const plan::Choice& choice);
  std::unique_ptr<BoundPlan> make(schedule::Schedule schedule, int channels);
  void prove(schedule::Algorithm algorithm, const schedule::Shape& shape, uint32_t depth) const;

  int rank_, size_;
  const Config& config_;
  plan::ClusterModel machine_;
  Placement placement_;
  Links& links_;
  engine::Crowd& crowd_;
  std::atomic<schedule::Algorithm> last_{schedule::Algorithm::kRing};
  std::atomic<size_t> memoryBytes_{0};  // of schedules and scratch
  std::atomic<uint64_t> directSlots_{0};
  PlanCache<Key, BoundPlan> collectives_;
  std::vector<std::unique_ptr<BoundPlan>> sends_, receives_;  // by peer
  std::vector<std::byte> fetched_;                            // engine::Binding::fetched of all collectives
};

}  // namespace tutti::comm

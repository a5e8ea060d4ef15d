// Runs the lanes of all ranks over bounded FIFOs, without data: which step happens after which, and whether all end.
//
// A lane blocks on its next step until every source link holds a slot and every destination link has room. Such lanes
// form a Kahn network (G. Kahn, "The semantics of a simple language for parallel programming", 1974): whether they
// finish, and what each slot carries, does not depend on who runs first. One run is all runs. What the engine does so
// that links over sockets are such FIFOs stands in docs/decisions/0015.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace tutti::proof {

using schedule::kDirectWrite;
using schedule::kFinalise;
using schedule::Operand;
using schedule::Schedule;
using schedule::SegmentMap;
using schedule::Step;

// How many rounds each segment has. A message of `rounds` rounds may leave its last segments short or empty, and in
// the v-variants every segment (all-to-all-v: every pair of ranks) has a length of its own.
class Lengths {
 public:
  static Lengths uniform(int rounds) { return Lengths(rounds); }
  // The first `full` segments have all rounds, the next one has `last`, the others none.
  static Lengths prefix(int rounds, uint32_t segments, uint32_t full, int last);
  // 0 … rounds for each segment and each pair, drawn from the seed.
  static Lengths random(int rounds, uint64_t seed);

  int rounds() const noexcept { return rounds_; }
  bool uniform() const noexcept { return kind_ == Kind::kUniform; }
  int of(const Schedule& schedule, const Step& step, uint32_t segment) const noexcept;
  // Whether the step has anything to do in that round; if not, it is skipped on both sides.
  bool any(const Schedule& schedule, const Step& step, int round) const noexcept;

 private:
  enum class Kind : uint8_t { kUniform, kPrefix, kRandom };
  explicit Lengths(int rounds) : rounds_(rounds) {}

  Kind kind_ = Kind::kUniform;
  int rounds_;
  uint32_t full_ = 0;
  int last_ = 0;
  uint64_t seed_ = 0;
};

// The links of a set of schedules, numbered over all ranks. Peers must be symmetric (see checkStructure).
struct Wiring {
  explicit Wiring(std::span<const Schedule> schedules);

  struct Ends {
    int sender, receiver;
  };
  std::vector<std::vector<uint32_t>> in, out;  // [rank][position in inPeers / outPeers] → link
  std::vector<Ends> links;
};

class Simulator {
 public:
  Simulator(std::span<const Schedule> schedules, const Wiring& wiring, int depth, Lengths lengths);

  struct Flow {
    uint64_t posted = 0, taken = 0;
  };
  static constexpr uint32_t kNoLink = ~0u;
  struct Lane {
    int iteration = 0;
    uint32_t step = 0;
    bool done = false;
    // While it is blocked: the link that it waits for, and how many operands of the step are known to be ready. They
    // stay so, as nobody else takes its slots or its room.
    uint32_t waitsFor = kNoLink;
    uint32_t readyOperands = 0;
  };

  // Calls visit(rank, step, round) for each step when it happens, in an order that all waits allow; the slots it takes
  // are number flows()[link].taken of their links, those it posts number .posted. Returns whether all lanes ended.
  template <class Visit>
  bool run(Visit visit) {
    std::vector<int> ready(schedules_.size());
    for (size_t rank = 0; rank < ready.size(); ++rank) ready[rank] = static_cast<int>(ready.size() - 1 - rank);
    size_t ended = 0;
    while (!ready.empty()) {
      const int rank = ready.back();
      ready.pop_back();
      if (runLane(rank, ready, visit)) ++ended;
    }
    return ended == schedules_.size();
  }

  std::span<const Flow> flows() const noexcept { return flows_; }
  std::span<const Lane> lanes() const noexcept { return lanes_; }
  int depth() const noexcept { return static_cast<int>(depth_); }

 private:
  // Until the lane blocks (false) or ends (true).
  template <class Visit>
  bool runLane(int rank, std::vector<int>& ready, Visit& visit) {
    const Schedule& schedule = schedules_[rank];
    Lane& lane = lanes_[rank];
    const int iterations = lengths_.rounds() + schedule.maxLag;
    for (; lane.iteration < iterations; ++lane.iteration, lane.step = 0) {
      for (; lane.step < schedule.steps.size(); ++lane.step) {
        const Step& step = schedule.steps[lane.step];
        const int round = lane.iteration - step.lag;
        if (round < 0 || !lengths_.any(schedule, step, round)) continue;
        if (!canRun(rank, step)) return false;
        visit(rank, step, round);
        advance(rank, step, ready);
      }
    }
    lane.done = true;
    return true;
  }

  bool canRun(int rank, const Step& step) noexcept;
  void advance(int rank, const Step& step, std::vector<int>& ready);

  std::span<const Schedule> schedules_;
  const Wiring& wiring_;
  uint64_t depth_;
  Lengths lengths_;
  std::vector<Flow> flows_;
  std::vector<Lane> lanes_;
};

}  // namespace tutti::proof

// What can be said of schedules without running them.
#include <fmt/format.h>

#include <algorithm>

#include "proof/trace.h"

namespace tutti::proof {
namespace {

class StructureCheck {
 public:
  StructureCheck(std::span<const Schedule> schedules, Problems& problems)
      : schedules_(schedules), problems_(problems) {}

  void check() {
    if (schedules_.empty()) return problems_.add("there are no schedules");
    for (size_t rank = 0; rank < schedules_.size() && !problems_.full(); ++rank) {
      const Schedule& schedule = schedules_[rank];
      checkHead(static_cast<int>(rank), schedule);
      checkPeers(schedule, schedule.inPeers);
      checkPeers(schedule, schedule.outPeers);
      for (const Step& step : schedule.steps) checkStep(schedule, step);
    }
    if (problems_.none()) checkSymmetry();
    if (problems_.none()) checkMaxSpan();
  }

 private:
  void complain(const Schedule& schedule, const std::string& what) {
    problems_.add(fmt::format("the schedule of rank {} {}", schedule.rank, what));
  }

  void checkHead(int rank, const Schedule& schedule) {
    const Schedule& first = schedules_[0];
    if (schedule.rank != rank) problems_.add(fmt::format("schedule {} is of rank {}", rank, schedule.rank));
    if (schedule.size != static_cast<int>(schedules_.size())) complain(schedule, "is for another number of ranks");
    if (schedule.collective != first.collective || schedule.algorithm != first.algorithm || schedule.map != first.map ||
        schedule.root != first.root || schedule.segments != first.segments || schedule.maxSpan != first.maxSpan ||
        schedule.depth != first.depth || schedule.directInPlace != first.directInPlace ||
        schedule.grouping != first.grouping || schedule.scratches != first.scratches) {
      complain(schedule,
               "differs from rank 0's in collective, algorithm, map, root, segments, maxSpan, depth, directInPlace, "
               "grouping or scratches");
    }
    if (schedule.segments < 1 || schedule.depth < 1) complain(schedule, "has no segments or a depth of 0");
    if (schedule.map == SegmentMap::kPerRank && schedule.segments != schedules_.size()) {
      complain(schedule, "has segments per rank, but not as many as ranks");
    }
    int lag = 0;
    for (const Step& step : schedule.steps) lag = std::max<int>(lag, step.lag);
    if (lag != schedule.maxLag) complain(schedule, fmt::format("states maxLag {}, has {}", schedule.maxLag, lag));
  }

  void checkPeers(const Schedule& schedule, const std::vector<int>& peers) {
    std::vector<int> sorted = peers;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) complain(schedule, "names a peer twice");
    for (int peer : sorted) {
      if (peer < 0 || peer >= static_cast<int>(schedules_.size()) || peer == schedule.rank) {
        complain(schedule, fmt::format("has rank {} for a peer", peer));
      }
    }
  }

  void checkStep(const Schedule& schedule, const Step& step) {
    const auto size = schedule.operands.size();
    const auto number = &step - schedule.steps.data();
    if (step.fromCount == 0 || step.toCount == 0 || step.fromBegin + size_t{step.fromCount} > size ||
        step.toBegin + size_t{step.toCount} > size) {
      return complain(schedule, fmt::format("has operands out of range in step {}", number));
    }
    if (step.segment >= schedule.segments || step.span < 1 || step.span > schedule.segments ||
        step.span > schedule.maxSpan) {
      complain(schedule,
               fmt::format("has segment {} or span {} out of range in step {}", step.segment, step.span, number));
    }
    if ((step.flags & ~(kFinalise | kDirectWrite | schedule::kLands)) != 0)
      complain(schedule, fmt::format("has unknown flags in step {}", number));
    const auto isScratch = [](Operand operand) { return operand.kind() == Operand::Kind::kScratch; };
    if (step.skip >= schedule.segments || (step.skip > 0 && std::ranges::none_of(schedule.from(step), isScratch)))
      complain(schedule, fmt::format("skips {} segments of no scratch buffer in step {}", step.skip, number));
    checkOperands(schedule, schedule.from(step), schedule.inPeers.size(), number);
    checkOperands(schedule, schedule.to(step), schedule.outPeers.size(), number);
    for (Operand operand : schedule.to(step)) {
      if (operand.kind() == Operand::Kind::kInput) {
        complain(schedule, fmt::format("writes to the input in step {}", number));
      }
    }
  }

  void checkOperands(const Schedule& schedule, std::span<const Operand> operands, size_t links, std::ptrdiff_t number) {
    seen_.assign(operands.begin(), operands.end());
    std::sort(seen_.begin(), seen_.end(),
              [](Operand a, Operand b) { return std::pair(a.kind(), a.index()) < std::pair(b.kind(), b.index()); });
    if (std::adjacent_find(seen_.begin(), seen_.end()) != seen_.end()) {
      complain(schedule, fmt::format("has an operand twice on one side of step {}", number));
    }
    for (Operand operand : seen_) {
      const size_t bound = operand.isLink()                            ? links
                           : operand.kind() == Operand::Kind::kScratch ? schedule.scratches
                                                                       : 1;
      if (static_cast<size_t>(operand.index()) >= bound) {
        complain(schedule, fmt::format("has an operand index {} out of range in step {}", operand.index(), number));
      }
    }
  }

  void checkMaxSpan() {
    int most = 1;
    for (const Schedule& schedule : schedules_) {
      for (const Step& step : schedule.steps) most = std::max<int>(most, step.span);
    }
    if (most != schedules_[0].maxSpan) {
      problems_.add(fmt::format("the schedules state maxSpan {}, have {}", schedules_[0].maxSpan, most));
    }
  }

  void checkSymmetry() {
    std::vector<std::pair<int, int>> sends, receives;
    for (const Schedule& schedule : schedules_) {
      for (int peer : schedule.outPeers) sends.emplace_back(schedule.rank, peer);
      for (int peer : schedule.inPeers) receives.emplace_back(peer, schedule.rank);
    }
    std::sort(sends.begin(), sends.end());
    std::sort(receives.begin(), receives.end());
    std::vector<std::pair<int, int>> lone;
    std::set_symmetric_difference(sends.begin(), sends.end(), receives.begin(), receives.end(),
                                  std::back_inserter(lone));
    for (const auto& [sender, receiver] : lone) {
      problems_.add(fmt::format("only one end of the link from rank {} to rank {} is there", sender, receiver));
    }
  }

  std::span<const Schedule> schedules_;
  Problems& problems_;
  std::vector<Operand> seen_;
};

}  // namespace

void checkStructure(std::span<const Schedule> schedules, Problems& problems) {
  StructureCheck(schedules, problems).check();
}

}  // namespace tutti::proof

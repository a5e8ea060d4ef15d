#include "engine/early.h"

#include <algorithm>

namespace tutti::engine {

using schedule::Operand;
using schedule::Schedule;
using schedule::Step;

namespace {

// How many steps touch each segment, of a buffer.
class Uses {
 public:
  explicit Uses(const Schedule& schedule) : of_(schedule.segments) {}
  void add(const Step& step) {
    uint32_t segment = step.segment;
    for (uint32_t i = 0; i < step.span; ++i) {
      ++of_[segment];
      if (++segment == of_.size()) segment = 0;
    }
  }
  uint32_t of(uint32_t segment) const { return of_[segment]; }

 private:
  std::vector<uint32_t> of_;
};

bool touchesOutput(const Schedule& schedule, const Step& step) {
  return std::ranges::count(schedule.from(step), Operand::output()) +
             std::ranges::count(schedule.to(step), Operand::output()) !=
         0;
}

bool onlyLands(const Schedule& schedule, const Step& step) {
  const auto from = schedule.from(step), to = schedule.to(step);
  return step.span == 1 && (step.flags & schedule::kFinalise) == 0 && from.size() == 1 && from[0].isLink() &&
         to.size() == 1 && to[0] == Operand::output();
}

}  // namespace

std::vector<bool> postsEarlyOf(const Schedule& schedule) {
  Uses outputs(schedule);
  std::vector<uint32_t> posts(schedule.outPeers.size());
  for (const Step& step : schedule.steps) {
    if (touchesOutput(schedule, step)) outputs.add(step);
    for (const Operand to : schedule.to(step))
      if (to.isLink()) ++posts[static_cast<size_t>(to.index())];
  }
  const auto isItsOwn = [&](const Step& step, Operand to) {
    return to.isLink() ? posts[static_cast<size_t>(to.index())] == 1
                       : to == Operand::output() && outputs.of(step.segment) == 1;
  };
  std::vector<bool> early;
  for (const Step& step : schedule.steps) {
    const auto from = schedule.from(step), to = schedule.to(step);
    early.push_back(step.span == 1 && (step.flags & schedule::kFinalise) == 0 && from.size() == 1 &&
                    from[0] == Operand::input() && std::ranges::any_of(to, &Operand::isLink) &&
                    std::ranges::all_of(to, [&](Operand operand) { return isItsOwn(step, operand); }));
  }
  return early;
}

std::vector<Early> earlyOf(const Schedule& schedule) {
  Uses inputs(schedule), outputs(schedule);
  for (const Step& step : schedule.steps) {
    if (std::ranges::count(schedule.from(step), Operand::input()) != 0) inputs.add(step);
    if (touchesOutput(schedule, step)) outputs.add(step);
  }
  std::vector<Early> early;
  for (const Step& step : schedule.steps) {
    if (!onlyLands(schedule, step) || outputs.of(step.segment) != 1)
      early.push_back(Early::kNever);
    else
      early.push_back(inputs.of(step.segment) == 0 ? Early::kAlways : Early::kApart);
  }
  return early;
}

}  // namespace tutti::engine

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

bool onlyLands(const Schedule& schedule, const Step& step) {
  const auto from = schedule.from(step), to = schedule.to(step);
  return step.span == 1 && (step.flags & schedule::kFinalise) == 0 && from.size() == 1 && from[0].isLink() &&
         to.size() == 1 && to[0] == Operand::output();
}

}  // namespace

std::vector<Early> earlyOf(const Schedule& schedule) {
  Uses inputs(schedule), outputs(schedule);
  for (const Step& step : schedule.steps) {
    const auto from = schedule.from(step), to = schedule.to(step);
    if (std::ranges::count(from, Operand::input()) != 0) inputs.add(step);
    if (std::ranges::count(from, Operand::output()) + std::ranges::count(to, Operand::output()) != 0) outputs.add(step);
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

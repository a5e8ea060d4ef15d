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

// Of a step that posts what is there.
bool copiesToLinks(const Schedule& schedule, const Step& step, const Uses& outputs) {
  const auto from = schedule.from(step), to = schedule.to(step);
  if (step.span != 1 || (step.flags & schedule::kFinalise) != 0 || from.size() != 1) return false;
  if (std::ranges::none_of(to, &Operand::isLink)) return false;
  const bool isInput = from[0] == Operand::input(), onlyPosts = std::ranges::all_of(to, &Operand::isLink);
  const uint32_t touching = outputs.of(step.segment);
  return onlyPosts ? isInput || (from[0] == Operand::output() && touching == 2)
                   : isInput && touching == 1 && std::ranges::count(to, Operand::output()) == 1;
}

// Whichever of two steps has the smaller lag is so many rounds further. Where they have the same, each is between two
// rounds of the other.
void keepOrder(const Step& step, const std::vector<const Step*>& others, Ahead& ahead) {
  for (const Step* other : others) {
    if (other == &step) continue;
    if (other->lag >= step.lag)
      ahead.before = std::min<size_t>(ahead.before, other->lag - step.lag);
    else
      ahead.after = std::min<size_t>(ahead.after, step.lag - other->lag);
  }
}

}  // namespace

std::vector<Ahead> postsAheadOf(const Schedule& schedule) {
  Uses outputs(schedule);
  std::vector<std::vector<const Step*>> posting(schedule.outPeers.size()), writing(schedule.segments);
  for (const Step& step : schedule.steps) {
    if (touchesOutput(schedule, step)) outputs.add(step);
    for (const Operand to : schedule.to(step)) {
      if (to.isLink()) posting[static_cast<size_t>(to.index())].push_back(&step);
      for (uint32_t i = 0; to == Operand::output() && i < step.span; ++i)
        writing[(step.segment + i) % schedule.segments].push_back(&step);
    }
  }
  std::vector<Ahead> ahead;
  for (const Step& step : schedule.steps) {
    Ahead& one = ahead.emplace_back();
    one.may = copiesToLinks(schedule, step, outputs);
    if (!one.may) continue;
    if (schedule.from(step)[0] == Operand::output()) keepOrder(step, writing[step.segment], one);
    for (const Operand to : schedule.to(step))
      if (to.isLink()) keepOrder(step, posting[static_cast<size_t>(to.index())], one);
  }
  return ahead;
}

bool mayWriteBehind(const Schedule& schedule) {
  const auto posts = [&](const Step& step) { return std::ranges::any_of(schedule.to(step), &Operand::isLink); };
  const auto poster = std::ranges::find_if(schedule.steps, posts);
  if (schedule.collective != Collective::kAllReduce || schedule.size != 2 || schedule.segments != 1) return false;
  if (poster == schedule.steps.end() || std::ranges::count_if(schedule.steps, posts) != 1) return false;
  const auto from = schedule.from(*poster), to = schedule.to(*poster);
  return from.size() == 1 && from[0] == Operand::input() && to.size() == 1 && poster->lag == 0;
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

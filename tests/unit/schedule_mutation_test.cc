// Does the verifier catch what it should? Every schedule here is damaged in every way that the list below knows, one
// damage at a time. verify() must report the mutant, or the mutant must be equivalent: that is decided by running it on
// numbers (schedule_interpreter.h, which shares no code with the verifier), out of place and in place, with whole and
// with short messages, each under several interleavings, and comparing all outputs with what the collective promises.
#include <gtest/gtest.h>

#include <functional>

#include "proof/verify.h"
#include "schedule/algorithm.h"
#include "support/sanitized.h"
#include "unit/every_schedule.h"
#include "unit/schedule_interpreter.h"

namespace tutti::proof {

using namespace schedule;

namespace {

using schedule::test::buildAll;
using schedule::test::nameOfCase;

constexpr int kLargest = kSanitized ? 4 : 8;

// A schedule whose steps own their operands, so that they can be changed one by one.
struct Loose {
  struct LooseStep {
    Step step;
    std::vector<Operand> from, to;
  };
  Schedule head;
  std::vector<LooseStep> steps;

  explicit Loose(const Schedule& schedule) : head(schedule) {
    for (const Step& step : schedule.steps) {
      const auto from = schedule.from(step), to = schedule.to(step);
      steps.push_back({step, {from.begin(), from.end()}, {to.begin(), to.end()}});
    }
  }

  Schedule tied() const {
    Schedule made = head;
    made.steps.clear();
    made.operands.clear();
    made.maxLag = 0;
    for (const LooseStep& loose : steps) {
      Step step = loose.step;
      const auto append = [&](const std::vector<Operand>& operands, uint32_t& begin, uint16_t& count) {
        begin = static_cast<uint32_t>(made.operands.size());
        count = static_cast<uint16_t>(operands.size());
        made.operands.insert(made.operands.end(), operands.begin(), operands.end());
      };
      append(loose.from, step.fromBegin, step.fromCount);
      append(loose.to, step.toBegin, step.toCount);
      made.maxLag = std::max(made.maxLag, step.lag);
      made.steps.push_back(step);
    }
    return made;
  }
};

using Mutate = std::function<void(Loose&)>;

void addStepMutations(const Loose& loose, size_t s, std::vector<Mutate>& all) {
  const auto steps = loose.steps.size();
  all.push_back([s](Loose& l) { l.steps.erase(l.steps.begin() + static_cast<std::ptrdiff_t>(s)); });
  all.push_back([s](Loose& l) { l.steps.insert(l.steps.begin() + static_cast<std::ptrdiff_t>(s), l.steps[s]); });
  for (uint32_t by = 1; by < loose.head.segments; by += 2) {
    all.push_back([=](Loose& l) { l.steps[s].step.segment = (l.steps[s].step.segment + by) % l.head.segments; });
  }
  all.push_back([s](Loose& l) { l.steps[s].step.lag++; });
  if (loose.steps[s].step.lag > 0) all.push_back([s](Loose& l) { l.steps[s].step.lag--; });
  all.push_back([s](Loose& l) { l.steps[s].step.span++; });
  if (loose.steps[s].step.span > 1) all.push_back([s](Loose& l) { l.steps[s].step.span--; });
  all.push_back([s](Loose& l) { l.steps[s].step.skip++; });
  if (loose.steps[s].step.skip > 0) all.push_back([s](Loose& l) { l.steps[s].step.skip--; });
  all.push_back([s](Loose& l) { l.steps[s].step.flags ^= kFinalise; });
  if (s + 1 < steps) all.push_back([s](Loose& l) { std::swap(l.steps[s], l.steps[s + 1]); });
}

// What could stand in the place of an operand: every other one of its side that the schedule has at all.
std::vector<Operand> others(Operand operand, size_t links, bool source) {
  std::vector<Operand> all{Operand::output()};
  if (source) all.push_back(Operand::input());
  for (size_t i = 0; i < links; ++i) all.push_back(Operand::link(static_cast<int>(i)));
  std::erase(all, operand);
  return all;
}

void addOperandMutations(const Loose& loose, size_t s, bool source, std::vector<Mutate>& all) {
  const auto side = [source](Loose::LooseStep& step) -> std::vector<Operand>& { return source ? step.from : step.to; };
  const auto& operands = source ? loose.steps[s].from : loose.steps[s].to;
  const size_t links = source ? loose.head.inPeers.size() : loose.head.outPeers.size();
  for (size_t i = 0; i < operands.size(); ++i) {
    for (Operand other : others(operands[i], links, source)) {
      all.push_back([=](Loose& l) { side(l.steps[s])[i] = other; });
      all.push_back([=](Loose& l) { side(l.steps[s]).push_back(other); });
    }
    all.push_back([=](Loose& l) { side(l.steps[s]).push_back(Operand(side(l.steps[s])[i])); });
    all.push_back([=](Loose& l) {
      auto& list = side(l.steps[s]);
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    });
    if (i + 1 < operands.size()) {
      all.push_back([=](Loose& l) { std::swap(side(l.steps[s])[i], side(l.steps[s])[i + 1]); });
    }
  }
}

std::vector<Mutate> mutationsOf(const Loose& loose) {
  std::vector<Mutate> all;
  for (size_t s = 0; s < loose.steps.size(); ++s) {
    addStepMutations(loose, s, all);
    addOperandMutations(loose, s, true, all);
    addOperandMutations(loose, s, false, all);
  }
  return all;
}

std::string firstFailure(std::span<const Schedule> schedules) {
  int lag = 0;
  for (const Schedule& schedule : schedules) lag = std::max<int>(lag, schedule.maxLag);
  schedule::test::Setting setting;
  setting.depth = schedules[0].depth;
  setting.rounds = setting.depth + lag + 2;
  for (int full : {1 << 20, 0, static_cast<int>(schedules[0].segments) / 2}) {
    if (full < (1 << 20) && schedules[0].map == SegmentMap::kPerRank) continue;
    setting.fullSegments = full;
    for (bool inPlace : {false, true}) {
      setting.inPlace = inPlace;
      for (setting.seed = 0; setting.seed < 3; ++setting.seed) {
        const std::string failure = schedule::test::runConcretely(schedules, setting);
        if (!failure.empty()) return failure;
      }
    }
  }
  return {};
}

struct Tally {
  int mutants = 0, reported = 0, equivalent = 0;
};

void tryMutants(const Shape& shape, std::vector<Schedule> schedules, Tally& tally) {
  for (int rank : {0, shape.size / 2, shape.size - 1}) {
    const Schedule original = schedules[rank];
    const Loose loose(original);
    const auto mutations = mutationsOf(loose);
    // Long schedules repeat themselves: of very many mutants take every so many, with a stride that meets all kinds.
    const size_t stride = 1 + mutations.size() / 400 * 2;
    for (size_t m = 0; m < mutations.size(); m += stride) {
      Loose mutant = loose;
      mutations[m](mutant);
      schedules[rank] = mutant.tied();
      ++tally.mutants;
      if (!verify(schedules, original.depth).ok) {
        ++tally.reported;
        continue;
      }
      ++tally.equivalent;
      const std::string failure = firstFailure(schedules);
      EXPECT_EQ(failure, "") << "mutant " << m << " of rank " << rank << " of " << shape.size << ", "
                             << nameOf(original.collective) << " " << nameOf(original.algorithm) << " slipped through";
    }
    schedules[rank] = original;
  }
}

class Mutation : public testing::TestWithParam<int> {};

TEST_P(Mutation, IsReportedOrEquivalent) {
  Tally tally;
  Shape shape;
  shape.collective = static_cast<Collective>(GetParam());
  for (Algorithm algorithm : algorithmsFor(shape.collective)) {
    for (shape.size = 2; shape.size <= kLargest; ++shape.size) {
      shape.root = hasRoot(shape.collective) ? shape.size / 2 : 0;
      shape.groupOf.clear();
      for (int rank = 0; rank < shape.size; ++rank) shape.groupOf.push_back(rank / 3);
      const auto schedules = buildAll(algorithm, shape);
      ASSERT_EQ(firstFailure(schedules), "") << nameOf(algorithm) << " of " << shape.size << " ranks";
      tryMutants(shape, schedules, tally);
    }
  }
  RecordProperty("mutants", tally.mutants);
  RecordProperty("reported", tally.reported);
  RecordProperty("equivalent", tally.equivalent);
  std::printf("  %d mutants: %d reported, %d equivalent\n", tally.mutants, tally.reported, tally.equivalent);
  // That none slips through is checked above, mutant by mutant. This only guards against damage that does none: most
  // equivalents are a change of order between independent steps, some 5 % of the mutants, 10 % at the smallest sizes.
  EXPECT_GT(tally.reported, 4 * tally.equivalent);
}

INSTANTIATE_TEST_SUITE_P(Schedules, Mutation, testing::Values(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12), nameOfCase);

// The judge of equivalence must itself see damage, or the test above would accept anything.
TEST(Interpreter, SeesDamage) {
  const auto shape = Shape{Collective::kAllReduce, 4, 0, {}};
  const auto schedules = buildAll(Algorithm::kRing, shape);
  int seen = 0, mutants = 0;
  for (const Mutate& mutate : mutationsOf(Loose(schedules[1]))) {
    Loose mutant(schedules[1]);
    mutate(mutant);
    auto damaged = schedules;
    damaged[1] = mutant.tied();
    bool runnable = true;
    for (const Step& step : damaged[1].steps) {
      runnable = runnable && step.fromCount > 0 && step.toCount > 0 && step.span <= damaged[1].segments;
    }
    if (!runnable) continue;
    ++mutants;
    seen += !firstFailure(damaged).empty();
  }
  EXPECT_GT(seen, mutants * 8 / 10) << "of " << mutants;
}

}  // namespace
}  // namespace tutti::proof

// Algorithms that say that they add in the order of the ranks do: each element is made in one step, which takes the
// operands of all ranks in that order, by whichever rank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "plan/device.h"
#include "plan/plan.h"
#include "schedule/algorithm.h"

namespace tutti::schedule {
namespace {

constexpr Collective kReductions[] = {Collective::kAllReduce, Collective::kReduce, Collective::kReduceScatter,
                                      Collective::kReduceScatterV};

int rankOf(const Schedule& schedule, Operand source) {
  if (source.isLink()) return schedule.inPeers[static_cast<size_t>(source.index())];
  return source.kind() == Operand::Kind::kInput ? schedule.rank : -1;
}

// What is wrong with the sums that one rank makes; empty when nothing is. Counts them by their segment.
std::string problemOf(const Schedule& schedule, std::map<uint32_t, int>& made) {
  for (const Step& step : schedule.steps) {
    const auto sources = schedule.from(step);
    if (sources.size() == 1) continue;
    if (sources.size() != static_cast<size_t>(schedule.size) || !(step.flags & kFinalise))
      return fmt::format("a sum of {} operands", sources.size());
    for (int rank = 0; rank < schedule.size; ++rank)
      if (rankOf(schedule, sources[static_cast<size_t>(rank)]) != rank)
        return fmt::format("operand {} is another rank's", rank);
    for (uint32_t s = step.segment; s < step.segment + step.span; ++s) made[s % schedule.segments]++;
  }
  return "";
}

std::string problemOf(Algorithm algorithm, const Shape& shape) {
  std::map<uint32_t, int> made;
  uint32_t segments = 0;
  for (int rank = 0; rank < shape.size; ++rank) {
    const Schedule schedule = build(algorithm, shape, rank);
    segments = schedule.segments;
    if (auto problem = problemOf(schedule, made); !problem.empty()) return problem;
  }
  return made.size() == segments ? "" : fmt::format("{} of {} segments are summed", made.size(), segments);
}

TEST(RankOrder, IsThatOfEverySumWhereTheRowSaysSo) {
  int found = 0;
  for (const Collective collective : kReductions)
    for (const Algorithm algorithm : algorithmsFor(collective))
      for (int size = 2; size <= 9; ++size)
        for (const int hosts : {1, 2, 4}) {
          Shape shape{collective, size, size / 2, {}};
          for (int rank = 0; rank < size; ++rank) shape.groupOf.push_back(rank % hosts);
          const std::string problem = problemOf(algorithm, shape);
          if (!rowOf(algorithm).addsInRankOrder) continue;
          EXPECT_EQ(problem, "") << nameOf(collective) << " by " << nameOf(algorithm) << " on " << size;
          ++found;
        }
  EXPECT_GE(found, 4 * 8 * 3);
  EXPECT_NE(problemOf(Algorithm::kRing, {Collective::kAllReduce, 5, 0, {}}), "") << "the test sees nothing";
}

// Every reduction has one, so that a plan never lacks it, whatever was forced.
TEST(RankOrder, IsWhatThePlanTakesWhereItIsAskedFor) {
  plan::ClusterModel machine;
  machine.ranks = machine.ranksPerHost = 200;
  plan::DeviceMachine gpus;
  gpus.ranks = 8;
  for (const Collective collective : kReductions)
    for (const size_t bytes : {size_t{8}, size_t{1} << 20, size_t{1} << 30}) {
      const Request request{collective, bytes, true};
      ASSERT_FALSE(algorithmsFor(request).empty());
      const Allowed forced = Algorithm::kRing;
      EXPECT_FALSE(allowedFor(request, forced).says());
      const plan::Plan plan = plan::choose(request, machine, forced, 0);
      EXPECT_TRUE(rowOf(plan.best.algorithm).addsInRankOrder) << nameOf(plan.best.algorithm);
      EXPECT_TRUE(rowOf(plan::chooseDevice(request, gpus, forced, {}, 0).algorithm).addsInRankOrder);
      EXPECT_TRUE(rowOf(plan::chooseStreamed(request, gpus, forced).algorithm).addsInRankOrder);
    }
  EXPECT_EQ(allowedFor({Collective::kAllReduce, 8, true}, Algorithm::kTwoShot), Algorithm::kTwoShot);
}

}  // namespace
}  // namespace tutti::schedule

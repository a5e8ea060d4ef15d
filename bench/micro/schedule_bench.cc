// What a schedule costs: to build one rank's, its memory, and to prove all ranks'.
#include <benchmark/benchmark.h>

#include "proof/verify.h"
#include "schedule/algorithm.h"

namespace tutti::proof {

using namespace schedule;

namespace {

Shape shapeOf(int size) {
  Shape shape;
  shape.size = size;
  for (int rank = 0; rank < size; ++rank) shape.groupOf.push_back(rank / 8);
  return shape;
}

size_t bytesOf(const Schedule& schedule) {
  return schedule.steps.capacity() * sizeof(Step) + schedule.operands.capacity() * sizeof(Operand) +
         (schedule.inPeers.capacity() + schedule.outPeers.capacity()) * sizeof(int);
}

void buildOne(benchmark::State& state, Algorithm algorithm) {
  const Shape shape = shapeOf(static_cast<int>(state.range(0)));
  size_t bytes = 0;
  for (auto _ : state) {
    const Schedule schedule = build(algorithm, shape, shape.size / 2);
    bytes = bytesOf(schedule);
    benchmark::DoNotOptimize(schedule.steps.data());
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}

void verifyAll(benchmark::State& state, Algorithm algorithm) {
  const Shape shape = shapeOf(static_cast<int>(state.range(0)));
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < shape.size; ++rank) schedules.push_back(build(algorithm, shape, rank));
  for (auto _ : state) {
    const Verdict verdict = verify(schedules, schedules[0].depth);
    if (!verdict.ok) state.SkipWithError(verdict.problems[0].c_str());
  }
}

BENCHMARK_CAPTURE(buildOne, ring, Algorithm::kRing)->Arg(8)->Arg(64)->Arg(1024)->Arg(10000);
BENCHMARK_CAPTURE(buildOne, tree, Algorithm::kTree)->Arg(8)->Arg(64)->Arg(1024)->Arg(10000);
BENCHMARK_CAPTURE(buildOne, hierarchical, Algorithm::kHierarchical)->Arg(8)->Arg(64)->Arg(1024)->Arg(10000);
BENCHMARK_CAPTURE(verifyAll, ring, Algorithm::kRing)->Arg(8)->Arg(64)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(verifyAll, tree, Algorithm::kTree)->Arg(8)->Arg(64)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(verifyAll, hierarchical, Algorithm::kHierarchical)->Arg(8)->Arg(64)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tutti::proof

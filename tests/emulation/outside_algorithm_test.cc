// An algorithm that src does not know, as docs/extending.md tells how to write one: a line. Proved, forced by
// TUTTI_ALGO, and run by host lanes and by the kernels of the emulated GPU.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "emulation/gpu_ranks.h"
#include "plan/plan.h"
#include "proof/verify.h"
#include "schedule/builder.h"

namespace tutti::test {
namespace {

using schedule::Operand;

constexpr Collective kHas[] = {Collective::kAllReduce};

// The sum goes along the ranks from the first to the last, and the same way back.
schedule::Schedule buildLine(const schedule::Shape& shape, int rank) {
  schedule::Builder builder(shape, rank, schedule::SegmentMap::kSplit, 1);
  const bool isFirst = rank == 0, isLast = rank == shape.size - 1;
  auto there = builder.at(0);
  if (!isFirst) there.fromRank(rank - 1);
  there.from(Operand::input());
  if (!isLast) there.toRank(rank + 1);
  if (isLast) there.to(Operand::output()).finalise().toRank(rank - 1).directWrite();
  if (!isLast) {
    auto back = builder.at(0).fromRank(rank + 1).to(Operand::output());
    if (!isFirst) back.toRank(rank - 1).directWrite();
  }
  return builder.finish(1);
}

schedule::Workload workload(const schedule::Request& request, const schedule::Scale& scale) {
  const auto bytes = static_cast<double>(request.bytes);
  schedule::Workload work;
  work.busiest = {2 * bytes, 2 * bytes, bytes, 2};
  work.mean = work.busiest;
  schedule::fillPipeline(work, scale, 2 * (scale.ranks - 1), bytes);
  return work;
}

constinit const schedule::AlgorithmRow kLine{
    .name = "line", .collectives = kHas, .build = buildLine, .workload = workload};

schedule::Algorithm line() {
  static const schedule::Algorithm registered = schedule::registerAlgorithm(kLine);
  return registered;
}

const std::vector<Setting> kForced = {{"TUTTI_ALGO", "line"}};

class OutsideAlgorithm : public ::testing::Test {
 protected:
  void SetUp() override { line(); }
};

TEST_F(OutsideAlgorithm, IsProved) {
  for (const int size : {2, 3, 4, 7, 16}) {
    std::vector<schedule::Schedule> all;
    for (int rank = 0; rank < size; ++rank)
      all.push_back(schedule::build(line(), {Collective::kAllReduce, size, 0, {}}, rank));
    const auto verdict = proof::verify(all, 1);
    EXPECT_TRUE(verdict.ok) << size << ": " << verdict.problems.front();
  }
}

TEST_F(OutsideAlgorithm, IsForcedAndRunsOnHosts) {
  const Settings settings(kForced);
  withCommunicators(3, testConfig(), [](tuttiComm_t comm, int rank) {
    std::vector<float> values(100'003, static_cast<float>(rank + 1));
    CHECK_TUTTI(tuttiAllReduce(values.data(), values.data(), values.size(), tuttiFloat32, tuttiSum, comm, nullptr));
    EXPECT_EQ(std::ranges::count(values, 6.0f), std::ssize(values));
    EXPECT_EQ(lastAlgorithm(comm), "line");
  });
}

TEST_F(OutsideAlgorithm, RunsInKernels) {
  const GpuRanks gpu(3, kForced);
  faults::Operation operation;
  operation.kind = faults::Kind::kAllReduce;
  operation.count = 4099;
  for (const bool inPlace : {false, true}) {
    operation.inPlace = inPlace;
    EXPECT_EQ(gpu.run(operation), "");
    EXPECT_EQ(lastAlgorithm(gpu[0]), "line");
  }
}

// It is one of those that the plan weighs, and of those that an error names.
TEST_F(OutsideAlgorithm, IsWeighedAndNamed) {
  plan::ClusterModel machine;
  machine.ranks = machine.ranksPerHost = 4;
  const auto plan = plan::choose({Collective::kAllReduce, 1 << 20}, machine, {}, 0);
  EXPECT_NE(std::ranges::find(plan.others, line(), &plan::Choice::algorithm), plan.others.end());
  try {
    schedule::algorithmByName("lien");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("twopass, line"), std::string::npos) << error.what();
  }
}

TEST_F(OutsideAlgorithm, NamesAreTakenOnce) {
  try {
    schedule::registerAlgorithm(kLine);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "an algorithm is called 'line' already");
  }
}

}  // namespace
}  // namespace tutti::test

// Arguments that do not fit into a launch, such as the tables of v-variants, stay as they are until the kernel that
// reads them has run, however many calls are made before.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "emulation/device_fixture.h"
#include "emulation/gpu_ranks.h"

namespace tutti::test {
namespace {

using device::test::Gate;
using device::test::Stream;
using faults::Operation;
using faults::Part;

// Two ranks, and room for the tables of 64 all-to-all-v: four of two counts each.
class DeviceArguments : public ::testing::Test {
 protected:
  static constexpr int kCalls = 64;
  const GpuRanks gpu_{2, {{"TUTTI_GPU_ARGUMENT_KIB", "4"}, {"TUTTI_CHANNELS", "1"}}};
  Stream stream_;
  std::vector<std::unique_ptr<Part>> parts_;
  uint64_t salt_ = 0;

  // That many calls in one group, each with counts of its own.
  tuttiResult_t issue(int calls) {
    CHECK_TUTTI(tuttiGroupStart());
    for (int i = 0; i < calls; ++i) {
      Operation operation;
      operation.kind = faults::Kind::kAllToAllV;
      operation.count = 100;
      operation.salt = ++salt_;
      for (int rank = 0; rank < 2; ++rank) {
        parts_.push_back(std::make_unique<Part>(operation, rank, 2));
        CHECK_TUTTI(parts_.back()->issue(gpu_[rank], stream_));
      }
    }
    return tuttiGroupEnd();
  }
  void expectRight() {
    gpu_.finish(stream_);
    for (size_t i = 0; i < parts_.size(); ++i) ASSERT_EQ(parts_[i]->check(), "") << "call " << i / 2;
    parts_.clear();
  }
};

TEST_F(DeviceArguments, StayWhileEarlierGroupsWaitToRun) {
  ASSERT_EQ(issue(28), tuttiSuccess);
  ASSERT_EQ(issue(28), tuttiSuccess);
  stream_.finish();
  Gate gate;
  gate.close(stream_);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    gate.open();
  });
  // The first of these comes to the end of the memory, the last to the end again.
  for (const int calls : {16, 32, 24}) EXPECT_EQ(issue(calls), tuttiSuccess);
  opener.join();
  expectRight();
}

TEST_F(DeviceArguments, OfAGroupThatTheyDoNotFitAreRefused) {
  for (const int calls : {kCalls / 2, 10}) ASSERT_EQ(issue(calls), tuttiSuccess);
  expectRight();
  EXPECT_EQ(issue(kCalls + 1), tuttiInvalidUsage);
  std::string text = tuttiGetLastError(gpu_[0]);
  text += tuttiGetLastError(nullptr);
  for (const char* word : {"4096 bytes", "smaller groups"}) EXPECT_NE(text.find(word), std::string::npos) << text;
  parts_.clear();  // nothing of it has been launched
  for (int i = 0; i < 3; ++i) ASSERT_EQ(issue(kCalls / 2), tuttiSuccess);
  expectRight();
}

// Works that do not fit into a launch are such arguments too: of a group whose last launch is refused no other goes
// out.
TEST(DeviceWorks, AreAllPlacedBeforeAnythingIsLaunched) {
  constexpr int kRanks = 12;
  const GpuRanks gpu(kRanks, {{"TUTTI_GPU_ARGUMENT_KIB", "8"}, {"TUTTI_CHANNELS", "1"}});
  std::vector<int32_t> values(kRanks, 1);
  const auto issue = [&](int rounds) {
    CHECK_TUTTI(tuttiGroupStart());
    for (int round = 0; round < rounds; ++round)
      for (int rank = 0; rank < kRanks; ++rank) {
        int32_t* const own = &values[static_cast<size_t>(rank)];
        CHECK_TUTTI(tuttiAllReduce(own, own, 1, tuttiInt32, tuttiSum, gpu[rank], nullptr));
      }
    return tuttiGroupEnd();
  };
  EXPECT_EQ(issue(3), tuttiInvalidUsage);
  gpu.finish();
  EXPECT_EQ(values, std::vector<int32_t>(kRanks, 1));
  EXPECT_EQ(issue(1), tuttiSuccess);
  gpu.finish();
  EXPECT_EQ(values, std::vector<int32_t>(kRanks, kRanks));
}

}  // namespace
}  // namespace tutti::test

// Operations drawn by chance on several communicators and streams of one GPU, in groups and alone: none hangs, all are
// right.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "emulation/device_fixture.h"
#include "emulation/gpu_ranks.h"
#include "emulation/pinned_memory.h"

namespace tutti::test {
namespace {

using device::test::Stream;
using faults::Operation;
using faults::Part;

constexpr int kCommunicators = 8, kStreams = 4;

// One operation under way: the parts of all ranks.
struct Running {
  Operation operation;
  const GpuRanks* gpu = nullptr;
  std::vector<std::unique_ptr<Part>> parts;

  Running(const Operation& what, const GpuRanks& where) : operation(what), gpu(&where) {
    operation.root %= where.size();
    for (int rank = 0; rank < where.size(); ++rank)
      parts.push_back(std::make_unique<Part>(operation, rank, where.size()));
  }
  void issue(cudaStream_t stream) const {
    for (int rank = 0; rank < gpu->size(); ++rank)
      check(parts[static_cast<size_t>(rank)]->issue((*gpu)[rank], stream), operation.describe().c_str(), (*gpu)[rank]);
  }
  void expectRight() const {
    gpu->finish();
    for (int rank = 0; rank < gpu->size(); ++rank)
      ASSERT_EQ(parts[static_cast<size_t>(rank)]->check(), "")
          << operation.describe() << ", rank " << rank << " of " << gpu->size();
    if (operation.kind != faults::Kind::kAllReduce) return;
    for (const auto& part : parts) ASSERT_EQ(part->digest(), parts[0]->digest()) << operation.describe();
  }
};

class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed) {}
  size_t below(size_t limit) { return random_() % limit; }
  Operation operation() {
    Operation operation;
    operation.kind = static_cast<faults::Kind>(below(faults::kKinds));
    operation.type = faults::kTypes[below(std::size(faults::kTypes))];
    operation.op = faults::drawOp(operation.type, [this](size_t limit) { return below(limit); });
    const size_t lot = below(100);
    operation.count = lot < 60 ? below(17) : lot < 95 ? below(513) : below(8193);
    operation.root = static_cast<int>(below(5040));
    operation.inPlace = below(2) == 0;
    operation.salt = random_();
    operation.rounds = faults::reduces(operation.kind) && faults::isFloat(operation.type) && below(2) == 0;
    return operation;
  }

 private:
  std::mt19937_64 random_;
};

// Runs operations step by step: up to eight of any communicators on any streams, all at once or in one group.
void runOperations(uint64_t seed, size_t operations, const std::vector<Setting>& settings) {
  Draws draw(seed);
  std::vector<std::unique_ptr<GpuRanks>> gpus;
  for (int i = 0; i < kCommunicators; ++i)
    gpus.push_back(std::make_unique<GpuRanks>(static_cast<int>(2 + draw.below(3)), settings));
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kStreams; ++i) streams.push_back(std::make_unique<Stream>());
  for (size_t done = 0; done < operations;) {
    std::vector<Running> running;
    for (size_t i = 0, most = 1 + draw.below(8); i < most; ++i)
      running.emplace_back(draw.operation(), *gpus[draw.below(gpus.size())]);
    const bool grouped = draw.below(2) == 0;
    const auto issue = [&](const Running& one) { one.issue(*streams[draw.below(streams.size())]); };
    if (grouped) inGroup([&] { std::ranges::for_each(running, issue); });
    for (const Running& one : running)
      if (!grouped) inGroup([&] { issue(one); });
    for (const auto& stream : streams) ASSERT_EQ(cudaStreamSynchronize(*stream), cudaSuccess);
    for (const Running& one : running) one.expectRight();
    if (::testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", among the 8 operations from " << done;
    done += running.size();
  }
}

// 10,000 in all, and fewer under a sanitizer.
class DeviceRandom : public ::testing::TestWithParam<uint64_t> {};

TEST_P(DeviceRandom, OperationsOfEightCommunicatorsOnFourStreams) {
  runOperations(GetParam(), kThreadSanitized ? 60 : kSanitized ? 200 : 2500, {{"TUTTI_CHANNELS", "1"}});
}

INSTANTIATE_TEST_SUITE_P(Seed, DeviceRandom, ::testing::Values(1, 2, 3, 4));

// The same while all or some of the operations wait in streams.
class DeviceRandomInStreams : public ::testing::TestWithParam<const char*> {};

TEST_P(DeviceRandomInStreams, OperationsOfEightCommunicatorsOnFourStreams) {
  const InPinnedMemory memory;
  for (const uint64_t seed : {5, 6})
    runOperations(seed, kSanitized ? 100 : 500, settingsOf(GetParam()) + std::vector<Setting>{{"TUTTI_CHANNELS", "1"}});
}

INSTANTIATE_TEST_SUITE_P(All, DeviceRandomInStreams, ::testing::Values("copy", "stream"),
                         [](const auto& way) { return std::string(way.param); });

}  // namespace
}  // namespace tutti::test

// What the GPU computes has the bits of what the host's engine computes by the same algorithm, whatever the values.
#include <gtest/gtest.h>

#include <algorithm>

#include "emulation/pinned_memory.h"
#include "emulation/reductions.h"
#include "schedule/builders.h"

namespace tutti::testing {
namespace {

using faults::Kind;

struct Way {
  std::string algorithm;
  int ranks;
};

bool has(Collective collective, const std::string& algorithm) {
  return std::ranges::any_of(schedule::algorithmsFor(collective), [&](auto one) { return nameOf(one) == algorithm; });
}

std::vector<Way> ways() {
  std::vector<Way> all;
  for (int a = 0; a < schedule::kAlgorithms; ++a)
    for (const int ranks : kSlow ? std::vector<int>{3} : std::vector<int>{2, 3, 5, 8})
      all.push_back({std::string(nameOf(static_cast<schedule::Algorithm>(a))), ranks});
  std::erase_if(all, [](const Way& way) {
    return !has(Collective::kAllReduce, way.algorithm) && !has(Collective::kReduceScatter, way.algorithm) &&
           !has(Collective::kReduce, way.algorithm);
  });
  if (kSlow) std::erase_if(all, [](const Way& way) { return way.algorithm != "ring" && way.algorithm != "tree"; });
  return all;
}

void PrintTo(const Way& way, std::ostream* out) { *out << way.algorithm << " on " << way.ranks; }

class DeviceBits : public ::testing::TestWithParam<Way> {
 protected:
  InPinnedMemory memory_;
  // The reductions that the algorithm has.
  static std::vector<Kind> kinds() {
    std::vector<Kind> kinds;
    if (has(Collective::kAllReduce, GetParam().algorithm)) kinds.push_back(Kind::kAllReduce);
    if (has(Collective::kReduceScatter, GetParam().algorithm)) kinds.push_back(Kind::kReduceScatter);
    if (has(Collective::kReduce, GetParam().algorithm)) kinds.push_back(Kind::kReduce);
    return kinds;
  }

  void expectTheSame(const std::vector<ReductionJob>& jobs, const char* channels) {
    const auto& [algorithm, ranks] = GetParam();
    const Settings grouped({Setting{"TUTTI_GROUP_SIZE", "2"}});
    const Outcomes host = runOnHost(jobs, ranks, algorithm);
    for (const auto& way : std::vector<std::string>{"simple", "ll", "ll128", "stream"}) {
      const GpuRanks gpu(
          ranks, settingsOf(way) + std::vector<Setting>{{"TUTTI_ALGO", algorithm}, {"TUTTI_CHANNELS", channels}});
      EXPECT_EQ(firstDifference(jobs, host, runOnGpu(jobs, gpu)), "") << way;
    }
  }
};

TEST_P(DeviceBits, AreTheHostsForEveryTypeAndOperator) {
  std::vector<ReductionJob> jobs;
  uint64_t salt = 0;
  for (const Kind kind : kinds())
    for (int type = 0; type < tuttiNumTypes; ++type)
      for (int op = 0; op <= faults::kPreMulSum; ++op) {
        ++salt;
        jobs.push_back({kind, static_cast<tuttiDataType_t>(type), op, 141, 0, 0, salt % 2 == 0, salt});
      }
  expectTheSame(jobs, "1");
}

INSTANTIATE_TEST_SUITE_P(All, DeviceBits, ::testing::ValuesIn(ways()),
                         [](const auto& way) { return way.param.algorithm + "_" + std::to_string(way.param.ranks); });

}  // namespace
}  // namespace tutti::testing

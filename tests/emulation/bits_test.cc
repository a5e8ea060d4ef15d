// What the GPU computes has the bits of what the host's engine computes by the same algorithm, whatever the values; and
// all ranks of an all-reduce have the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "device/protocol.h"
#include "emulation/pinned_memory.h"
#include "emulation/reductions.h"
#include "schedule/algorithm.h"

namespace tutti::test {
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
  for (int a = 0; a < schedule::kBuiltInAlgorithms; ++a)
    for (const int ranks : kSanitized ? std::vector<int>{3} : std::vector<int>{2, 3, 5, 8})
      all.push_back({std::string(nameOf(static_cast<schedule::Algorithm>(a))), ranks});
  std::erase_if(all, [](const Way& way) {
    return !has(Collective::kAllReduce, way.algorithm) && !has(Collective::kReduceScatter, way.algorithm) &&
           !has(Collective::kReduce, way.algorithm);
  });
  if (kSanitized)
    std::erase_if(
        all, [](const Way& way) { return way.algorithm != "ring" && (kThreadSanitized || way.algorithm != "tree"); });
  return all;
}

void PrintTo(const Way& way, std::ostream* out) { *out << way.algorithm << " on " << way.ranks; }

// tests/acceptance/bits asks for so many rounds more, of other values and counts.
int moreRounds() {
  const char* const wanted = std::getenv("TUTTI_TEST_BITS_ROUNDS");
  return wanted == nullptr ? 0 : std::atoi(wanted);
}

// Emulation takes its time: where nobody asks for more, each type and operator has two of the four numbers of ranks,
// one of them a power of two.
bool isDueOn(int ranks, tuttiDataType_t type, int op) {
  return kSanitized || moreRounds() > 0 || (type + op + (ranks > 3 ? 1 : 0)) % 2 == 0;
}

// "stream", and a kernel by each protocol.
std::vector<std::string> engines() {
  std::vector<std::string> engines{"stream"};
  for (const ProtocolRow& protocol : kProtocolRows) engines.emplace_back(protocol.name);
  return engines;
}

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

  // Every type and operator, all-reduces both in place and not.
  static std::vector<ReductionJob> everything(size_t count, uint64_t salt) {
    std::vector<ReductionJob> jobs;
    for (const Kind kind : kinds())
      for (const tuttiDataType_t type : faults::kTypes)
        for (const int op : faults::kOps)
          for (const bool inPlace : {false, true}) {
            ++salt;
            if (faults::isDefined(op, type) && isDueOn(GetParam().ranks, type, op) &&
                (kind == Kind::kAllReduce || inPlace == ((type + op) / 2 % 2 == 0)))
              jobs.push_back({kind, type, op, count, 0, 0, inPlace, salt});
          }
    return jobs;
  }

  void expectTheSame(const std::vector<ReductionJob>& jobs, const char* channels) {
    const auto& [algorithm, ranks] = GetParam();
    const Settings grouped({Setting{"TUTTI_GROUP_SIZE", "2"}, Setting{"TUTTI_CHANNELS", channels}});
    const Outcomes host = runOnHost(jobs, ranks, algorithm);
    EXPECT_EQ(firstDisagreement(jobs, host), "") << "on the host";
    for (const std::string& way : engines()) {
      const GpuRanks gpu(
          ranks, settingsOf(way) + std::vector<Setting>{{"TUTTI_ALGO", algorithm}, {"TUTTI_CHANNELS", channels}});
      const Outcomes outcomes = runOnGpu(jobs, gpu);
      EXPECT_EQ(firstDisagreement(jobs, outcomes), "") << way;
      EXPECT_EQ(firstDifference(jobs, host, outcomes), "") << way;
    }
  }
};

TEST_P(DeviceBits, AreTheHostsAndEveryRanksForEveryTypeAndOperator) {
  expectTheSame(everything(141, 0), "1");
  std::mt19937_64 random(1);
  for (int round = 1; round <= moreRounds() && !HasFailure(); ++round) {
    const size_t count = round % 8 == 0 ? random() % 40'000 : 1 + random() % 600;
    SCOPED_TRACE(fmt::format("round {}, {} elements", round, count));
    expectTheSame(everything(count, static_cast<uint64_t>(round) << 32), round % 2 == 0 ? "1" : "3");
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceBits, ::testing::ValuesIn(ways()),
                         [](const auto& way) { return way.param.algorithm + "_" + std::to_string(way.param.ranks); });

// There a reduction is no copy.
TEST(DeviceTruth, IsZeroOrOneOnOneRankAlone) {
  const InPinnedMemory memory;
  std::vector<ReductionJob> jobs;
  for (const Kind kind : {Kind::kAllReduce, Kind::kReduceScatter, Kind::kReduce})
    for (const int op : faults::kOps)
      for (const bool inPlace : {false, true})
        if (faults::isDefined(op, tuttiBool)) jobs.push_back({kind, tuttiBool, op, 141, 0, 3, inPlace, jobs.size()});
  const Outcomes host = runOnHost(jobs, 1, "ring");
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i].inPlace) continue;  // else it has what lies around it
    EXPECT_LE(std::ranges::max(host[i]), std::byte{1}) << jobs[i].describe();
  }
  for (const std::string& way : engines()) {
    const GpuRanks gpu(1, settingsOf(way));
    EXPECT_EQ(firstDifference(jobs, host, runOnGpu(jobs, gpu)), "") << way;
  }
}

}  // namespace
}  // namespace tutti::test

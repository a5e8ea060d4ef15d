// TUTTI_REPRODUCIBLE=1: a number of ranks gets the same bits of the same values, whatever was forced or chosen, over
// however many channels, on one host or several, by the host's engine or a GPU.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "device/protocol.h"
#include "emulation/pinned_memory.h"
#include "emulation/reductions.h"
#include "schedule/algorithm.h"

namespace tutti::test {
namespace {

using faults::Kind;

struct Placement {
  int hosts = 1;
  bool inTurn = false;  // ranks are dealt to the hosts one by one, and not in blocks
  std::string hostOf(int rank, int ranks) const {
    return "host " + std::to_string(inTurn ? rank % hosts : rank * hosts / ranks);
  }
};

std::vector<std::string> everyAlgorithm() {
  std::vector<std::string> names{""};  // as the plan has it
  for (int a = 0; a < schedule::kBuiltInAlgorithms; ++a)
    names.emplace_back(nameOf(static_cast<schedule::Algorithm>(a)));
  return names;
}

std::vector<ReductionJob> floatingJobs(size_t count) {
  std::vector<ReductionJob> jobs;
  for (const Kind kind : {Kind::kAllReduce, Kind::kReduceScatter, Kind::kReduce})
    for (int type = 0; type < tuttiNumTypes; ++type)  // all of NCCL's: the floating ones are among them
      for (int op = 0; op <= faults::kPreMulSum && formatOf(static_cast<tuttiDataType_t>(type)).isFloat(); ++op)
        jobs.push_back({kind, static_cast<tuttiDataType_t>(type), op, count, 0, 0, op % 2 == 0, jobs.size()});
  return jobs;
}

std::vector<Setting> settingsFor(const std::string& algorithm, int channels) {
  std::vector<Setting> settings{{"TUTTI_CHANNELS", std::to_string(channels)}};
  if (!algorithm.empty()) settings.push_back({"TUTTI_ALGO", algorithm});
  return settings;
}

// Ranks that are threads; TUTTI_HOST_ID is read when a rank begins to join.
template <class Body>
void onHosts(int ranks, const Placement& place, const std::vector<Setting>& settings, bool asks, Body body) {
  const Settings set(settings);
  std::vector<tuttiComm_t> comms(static_cast<size_t>(ranks));
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  tuttiConfig_t config = inBackground();
  config.reproducible = asks ? 1 : 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const Settings host({{"TUTTI_HOST_ID", place.hostOf(rank, ranks)}});
    EXPECT_EQ(tuttiCommInitRankConfig(&comms[static_cast<size_t>(rank)], ranks, id, rank, &config), tuttiInProgress);
  }
  runRanks(ranks, [&](int rank) {
    const tuttiComm_t comm = comms[static_cast<size_t>(rank)];
    check(outcomeOf(comm), "joining", comm);
    body(comm, rank);
    CHECK_TUTTI(tuttiCommDestroy(comm));
  });
}

Outcomes onHosts(const std::vector<ReductionJob>& jobs, int ranks, const Placement& place,
                 const std::vector<Setting>& settings, bool asks = false) {
  Outcomes outcomes(static_cast<size_t>(ranks) * jobs.size());
  onHosts(ranks, place, settings, asks, [&](tuttiComm_t comm, int rank) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      ReductionPart part(jobs[i], rank, ranks);
      part.issue(comm, nullptr);
      outcomes[static_cast<size_t>(rank) * jobs.size() + i] = part.outcome();
    }
  });
  return outcomes;
}

// What rank 0 has of a call that has a configuration of its own, between two that have none.
std::vector<float> sumByOneCall(int ranks, const Placement& place, const tuttiCallConfig_t& call) {
  constexpr size_t kSummed = 5'003;
  std::vector<float> sum;
  onHosts(ranks, place, {}, false, [&](tuttiComm_t comm, int rank) {
    std::mt19937 random(static_cast<unsigned>(rank));
    std::vector<float> mine(kSummed), all(kSummed), plain(kSummed);
    for (float& value : mine) value = std::uniform_real_distribution<float>(-1, 1)(random);
    const auto addUp = [&](std::vector<float>& into, const tuttiCallConfig_t* config) {
      CHECK_TUTTI(
          tuttiAllReduceConfig(mine.data(), into.data(), kSummed, tuttiFloat32, tuttiSum, comm, nullptr, config));
    };
    addUp(plain, nullptr);
    addUp(all, &call);
    addUp(plain, nullptr);
    if (rank == 0) sum = all;
  });
  return sum;
}

class Reproducible : public ::testing::TestWithParam<int> {
 protected:
  InPinnedMemory memory_;
  const int ranks_ = GetParam();
  const std::vector<ReductionJob> jobs_ = floatingJobs(kSanitized ? 19 : 141);
  const Outcomes reference_ = [this] {
    const Settings on({Setting{"TUTTI_REPRODUCIBLE", "1"}});
    return onHosts(jobs_, ranks_, {}, settingsFor("", 1));
  }();
};

TEST_P(Reproducible, BitsAreTheSameByEveryAlgorithmOverAllChannelsAndHosts) {
  const Settings on({Setting{"TUTTI_REPRODUCIBLE", "1"}});
  EXPECT_EQ(firstDisagreement(jobs_, reference_), "");
  int next = 0;
  for (const int hosts : {1, 2, 4}) {
    if (hosts > ranks_) continue;
    for (const std::string& algorithm : everyAlgorithm()) {
      const Placement place{hosts, next % 2 == 0};
      const int channels = 1 + next++ % 4;
      const Outcomes outcomes = onHosts(jobs_, ranks_, place, settingsFor(algorithm, channels));
      EXPECT_EQ(firstDifference(jobs_, reference_, outcomes), "")
          << "on " << hosts << " hosts, TUTTI_ALGO=" << algorithm << ", " << channels << " channels";
    }
  }
}

TEST_P(Reproducible, BitsAreTheSameWhereTheProgramAsksForIt) {
  const Outcomes outcomes = onHosts(jobs_, ranks_, {2}, settingsFor("hierarchical", 2), true);
  EXPECT_EQ(firstDifference(jobs_, reference_, outcomes), "");
}

TEST_P(Reproducible, BitsAreTheSameWhereACallAsksForIt) {
  tuttiCallConfig_t call = TUTTI_CALL_CONFIG_INITIALIZER;
  call.reproducible = 1;
  const std::vector<float> reference = sumByOneCall(ranks_, {}, call);
  int differ = 0;
  for (const char* algorithm : {"ring", "tree", "hierarchical"})
    for (const int channels : {1, 3}) {
      call.algorithm = algorithm;
      call.channels = channels;
      call.reproducible = 1;
      EXPECT_EQ(sumByOneCall(ranks_, {2, true}, call), reference) << algorithm << ", " << channels << " channels";
      call.reproducible = 0;
      if (sumByOneCall(ranks_, {2, true}, call) != reference) ++differ;
    }
  EXPECT_TRUE(ranks_ <= 3 || differ > 0) << "or this would show nothing";
}

TEST_P(Reproducible, BitsAreTheGpus) {
  const Settings on({Setting{"TUTTI_REPRODUCIBLE", "1"}});
  std::vector<std::string> ways{"stream"};
  for (const ProtocolRow& protocol : kProtocolRows) ways.emplace_back(protocol.name);
  int next = 0;
  for (const std::string& way : ways)
    for (const std::string& algorithm : everyAlgorithm()) {
      const int channels = 1 + next++ % 4;
      if (next % (kSanitized ? 8 : 3) != 0) continue;
      const GpuRanks gpu(ranks_, settingsOf(way) + settingsFor(algorithm, channels));
      EXPECT_EQ(firstDifference(jobs_, reference_, runOnGpu(jobs_, gpu)), "")
          << "by " << way << ", TUTTI_ALGO=" << algorithm << ", " << channels << " channels";
    }
}

// Or the two above would show nothing.
TEST_P(Reproducible, BitsDependOnTheAlgorithmWhereItIsOff) {
  if (ranks_ == 2) GTEST_SKIP() << "two operands have one order, but for zeros and numbers that are none";
  const Outcomes ring = onHosts(jobs_, ranks_, {}, settingsFor("ring", 1));
  EXPECT_NE(firstDifference(jobs_, reference_, ring), "");
}

std::vector<int> sizes() { return kSanitized ? std::vector<int>{3} : std::vector<int>{2, 3, 4, 5, 6, 7, 8}; }
INSTANTIATE_TEST_SUITE_P(Ranks, Reproducible, ::testing::ValuesIn(sizes()), ::testing::PrintToStringParamName());

}  // namespace
}  // namespace tutti::test

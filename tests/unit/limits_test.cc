// Every field that is narrower than an int: what goes into it fits, up to the largest job that may be joined, and one
// beyond is refused by whoever sees it first.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>

#include "base/error.h"
#include "comm/plans.h"
#include "gpu/programs.h"
#include "job/ranks.h"
#include "link/transport.h"
#include "plan/plan.h"
#include "schedule/builder.h"
#include "settings/settings.h"
#include "team/call.h"
#include "team/recorder.h"

namespace tutti {
namespace {

using schedule::Algorithm;
using schedule::Builder;
using schedule::Operand;
using schedule::Schedule;
using schedule::Shape;
using schedule::Step;

constexpr int kMostRanks = control::kMaxRanks;

Shape layoutOf(Collective collective, int size) {
  Shape shape{collective, size, hasRoot(collective) ? size - 1 : 0, {}};
  for (int rank = 0; rank < size; ++rank) shape.groupOf.push_back(rank / 8);
  return shape;
}

template <class Visit>
void forEveryAlgorithm(Visit visit) {
  for (int c = 0; c < kCollectives; ++c)
    for (const Algorithm algorithm : schedule::algorithmsFor(static_cast<Collective>(c)))
      visit(static_cast<Collective>(c), algorithm);
}

template <class Field, class Value>
bool fits(Value value) {
  return value >= 0 && static_cast<uint64_t>(value) <= std::numeric_limits<Field>::max();
}

Builder builderFor(int size) { return {Shape{Collective::kAllReduce, size, 0, {}}, 0, {}, 1}; }

// 14-bit operands, 16-bit spans and counts, 8-bit lags: of the largest job there is.
TEST(Limits, SchedulesOfTheLargestJobFitIntoTheirFields) {
  forEveryAlgorithm([](Collective collective, Algorithm algorithm) {
    const Shape shape = layoutOf(collective, kMostRanks);
    for (const int rank : {0, 1, kMostRanks / 2, kMostRanks - 1}) {
      const Schedule made = schedule::build(algorithm, shape, rank);
      SCOPED_TRACE(std::string(nameOf(collective)) + " by " + std::string(nameOf(algorithm)));
      size_t operands = 0;
      int lag = 0, span = 1;
      for (const Step& step : made.steps) {
        ASSERT_EQ(step.fromBegin, operands);
        ASSERT_EQ(step.toBegin, operands + step.fromCount);
        operands += size_t{step.fromCount} + step.toCount;
        lag = std::max<int>(lag, step.lag);
        span = std::max<int>(span, step.span);
        ASSERT_LT(step.segment, made.segments);
      }
      EXPECT_EQ(operands, made.operands.size()) << "a count was cut off";
      EXPECT_EQ(lag, made.maxLag);
      EXPECT_LE(span, made.maxSpan);
      EXPECT_LE(made.inPeers.size(), size_t{Operand::kMaxIndex} + 1);
      EXPECT_LE(made.outPeers.size(), size_t{Operand::kMaxIndex} + 1);
      EXPECT_LE(made.grouping, Schedule::kMostGrouping);
      // What a GPU's program keeps of it.
      EXPECT_TRUE(fits<uint16_t>(made.inPeers.size()) && fits<uint16_t>(made.outPeers.size()));
    }
  });
}

TEST(Limits, ABuilderRefusesWhatItsFieldsCanNotHold) {
  const auto refuses = [](auto action) {
    try {
      Builder builder = builderFor(1 << 20);
      action(builder);
    } catch (const Error& error) {
      return std::string(error.what()).find("has no room for") != std::string::npos;
    }
    return false;
  };
  EXPECT_FALSE(refuses([](Builder& b) { b.at(0).lag(255); }));
  EXPECT_TRUE(refuses([](Builder& b) { b.at(0).lag(256); }));
  EXPECT_FALSE(refuses([](Builder& b) { b.at(0).span(65535); }));
  EXPECT_TRUE(refuses([](Builder& b) { b.at(0).span(65536); }));
  EXPECT_FALSE(refuses([](Builder& b) { b.finish(65535, 65535); }));
  EXPECT_TRUE(refuses([](Builder& b) { b.finish(65536); }));
  EXPECT_TRUE(refuses([](Builder& b) { b.finish(1, 65536); }));
  const auto sources = [](int count) {
    return [count](Builder& b) {
      auto step = b.at(0);
      for (int i = 0; i < count; ++i) step.from(Operand::input());
    };
  };
  EXPECT_FALSE(refuses(sources(65535)));
  EXPECT_TRUE(refuses(sources(65536)));
  const auto peers = [](int count) {
    return [count](Builder& b) {
      for (int peer = 1; peer <= count; ++peer) b.at(0).toRank(peer);
    };
  };
  EXPECT_FALSE(refuses(peers(Operand::kMaxIndex + 1)));
  EXPECT_TRUE(refuses(peers(Operand::kMaxIndex + 2)));
}

// The control plane, the schedules, the recorder and the settings know one largest job.
TEST(Limits, MoreRanksThanSchedulesHaveRoomForAreRefusedWhenJoining) {
  static_assert(control::kMaxRanks == Operand::kMaxIndex + 1);
  EXPECT_FALSE(control::wrongPlace(kMostRanks - 1, kMostRanks));
  EXPECT_EQ(control::wrongPlace(0, kMostRanks + 1), "there can be 1 to 16384 ranks");
  EXPECT_THROW(schedule::build(Algorithm::kRing, {Collective::kAllReduce, kMostRanks + 1, 0, {}}, 0), Error);
  const settings::Setting* const size = settings::findSetting("TUTTI_SIZE");
  ASSERT_NE(size, nullptr);
  EXPECT_EQ(size->high, kMostRanks);
  EXPECT_EQ(settings::findSetting("TUTTI_RANK")->high, kMostRanks - 1);
  EXPECT_EQ(settings::findSetting("TUTTI_LOCAL_SIZE")->high, kMostRanks);
  EXPECT_EQ(settings::findSetting("TUTTI_LOCAL_RANK")->high, kMostRanks - 1);
}

// 48 bits of count, 7 of channels, 9 of grouping, 16 of root, 4 each of the rest.
TEST(Limits, AFingerprintHoldsTheLargestOfEverything) {
  static_assert(std::has_unique_object_representations_v<link::Fingerprint>, "it is compared and sent as two words");
  comm::Call call;
  call.collective = static_cast<Collective>(kCollectives - 1);
  call.type = static_cast<DataType>(kDataTypes - 1);
  call.count = comm::kMostElements;
  const link::Fingerprint last = call.fingerprint(~uint32_t{0});
  EXPECT_EQ(last.kindAndType >> 4, kCollectives - 1);
  EXPECT_EQ(last.kindAndType & 15, kDataTypes - 1);
  EXPECT_EQ(last.operation, ~uint32_t{0});
  call.collective = Collective::kReduce;
  EXPECT_EQ(call.fingerprint(0).count, call.count);
  call.op = static_cast<ReduceOp>(kReduceOps - 1);
  call.root = kMostRanks - 1;
  EXPECT_EQ(call.fingerprint(0).root, kMostRanks - 1);
  EXPECT_EQ(call.fingerprint(0).op, kReduceOps - 1);
  Schedule schedule;
  schedule.algorithm = static_cast<Algorithm>(schedule::kMostAlgorithms - 1);
  schedule.grouping = Schedule::kMostGrouping;
  const auto channels = static_cast<uint32_t>(schedule::kMostChannels);
  const link::Fingerprint mark = comm::planned(call.fingerprint(0), schedule, channels);
  EXPECT_EQ(mark.channels, channels);
  EXPECT_EQ(mark.grouping, Schedule::kMostGrouping);
  EXPECT_EQ(mark.algorithm, schedule::kMostAlgorithms);
  EXPECT_EQ(mark.call(), call.fingerprint(0));
}

// 24 bits of rank.
TEST(Limits, TheRecorderKeepsTheLastRank) {
  const auto recorder = std::make_unique<comm::Recorder>();
  comm::Call call;
  call.collective = Collective::kSendRecv;
  call.root = kMostRanks - 1;
  const auto token = recorder->begin(call, call.fingerprint(0), true, 0);
  recorder->progressed(token, kMostRanks - 1, 0, 1);
  const auto record = recorder->records().at(0);
  EXPECT_EQ(record.peer, kMostRanks - 1);
  EXPECT_EQ(record.waitingFor, kMostRanks - 1);
}

// The plan never takes an algorithm whose slots have less than an element for each of their segments; who asks for it
// is told so.
TEST(Limits, AChunkIsAnElementAtLeast) {
  const uint32_t slotBytes = link::Edge{}.slotBytes;
  for (const int size : {2, 1024, 8191, 8192, 8193, 8194, 10'000, kMostRanks}) {
    plan::ClusterModel machine;
    machine.ranks = machine.ranksPerHost = size;
    machine.slotRoom = slotBytes;
    for (int c = 0; c < kCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      if (collective == Collective::kSendRecv) continue;
      for (const size_t bytes : {size_t{1}, size_t{1} << 20}) {
        const plan::Plan plan = plan::choose({collective, bytes}, machine, {}, 0);
        const Schedule made = schedule::build(plan.best.algorithm, {collective, size, 0, {}}, size / 2);
        EXPECT_GE(comm::chunkBytesOf(made, slotBytes), kLargestElement)
            << nameOf(collective) << " by " << nameOf(made.algorithm) << " on " << size;
      }
    }
  }
}

TEST(Limits, AnAlgorithmWhoseChunksAreTooSmallIsRefused) {
  const uint32_t slotBytes = link::Edge{}.slotBytes;
  const auto halving = [](int size) {
    return schedule::build(Algorithm::kHalving, {Collective::kAllGather, size, 0, {}}, 1);
  };
  EXPECT_EQ(comm::chunkBytesOf(halving(8193), slotBytes), kLargestElement);
  try {
    comm::chunkBytesOf(halving(8194), slotBytes);
    FAIL() << "a slot of " << slotBytes << " bytes can not hold 8193 elements";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidUsage);
    EXPECT_NE(std::string(error.what()).find("all-gather by halving on 8194 ranks puts 8193 segments into a slot"),
              std::string::npos)
        << error.what();
  }
  plan::ClusterModel machine;
  machine.ranks = machine.ranksPerHost = 8194;
  const plan::Plan plan = plan::choose({Collective::kAllGather, 64}, machine, {}, 0);
  const auto names = [](const std::string& line) { return line.starts_with("halving: a slot would carry"); };
  EXPECT_EQ(std::ranges::count_if(plan.excluded, names), 1);
}

gpu::GpuLayout gpus(int size, uint32_t slotBytes) {
  gpu::GpuLayout shape;
  shape.size = size;
  shape.slotBytes.fill(slotBytes);
  shape.streamSlotBytes = slotBytes;
  shape.linesMoveWhole = true;
  return shape;
}

// Nor does it on GPUs, whose slots may be short, and carry flags besides: with no protocol, and not in streams.
TEST(Limits, AChunkOnGpusIsAnElementAtLeast) {
  for (const int size : {2, 8, 9, 64, 65, 256, 257, 2048, 2049, 5000}) {
    const gpu::GpuLayout shape = gpus(size, 4096);
    for (int c = 0; c < kCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      if (collective == Collective::kSendRecv) continue;
      for (const size_t bytes : {size_t{1}, size_t{1} << 20})
        for (int p = -1; p <= kProtocols; ++p) {
          const bool streamed = p == kProtocols;
          const auto forced = p < 0 || streamed ? plan::AllowedProtocols() : static_cast<Protocol>(p);
          const auto machine = gpu::deviceMachine(shape, streamed);
          const auto choice = streamed ? plan::chooseStreamed({collective, bytes}, machine, {})
                                       : plan::chooseDevice({collective, bytes}, machine, {}, forced, 0);
          const Schedule made = schedule::build(choice.algorithm, {collective, size, 0, {}}, size / 2);
          EXPECT_NO_THROW(gpu::deviceChunkBytes(made, choice.protocol, shape, streamed))
              << nameOf(collective) << " by " << nameOf(made.algorithm) << " on " << size;
        }
    }
  }
}

// What adds in the order of the ranks has links between all of them, and a GPU serves only so many.
TEST(Limits, MoreGpusThanAddInTheOrderOfTheRanksAreToldSo) {
  for (const bool streamed : {false, true})
    for (const Collective collective : {Collective::kAllReduce, Collective::kReduceScatter, Collective::kReduce}) {
      const schedule::Request request{collective, 1 << 20, true};
      const auto require = [&](int size) {
        const auto machine = gpu::deviceMachine(gpus(size, 1 << 20), streamed);
        const auto choice =
            streamed ? plan::chooseStreamed(request, machine, {}) : plan::chooseDevice(request, machine, {}, {}, 0);
        gpu::requireRankOrder(request, choice.algorithm, machine);
      };
      EXPECT_NO_THROW(require(65));
      try {
        require(66);
        FAIL() << nameOf(collective);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidUsage);
        for (const char* words : {"in the order of the ranks (TUTTI_REPRODUCIBLE", "a GPU serves 64: 66 GPUs are too"})
          EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      }
    }
}

TEST(Limits, AnAlgorithmWhoseChunksOnGpusAreTooSmallIsRefused) {
  const auto halving = [](int size) {
    return schedule::build(Algorithm::kHalving, {Collective::kAllGather, size, 0, {}}, 1);
  };
  EXPECT_EQ(gpu::deviceChunkBytes(halving(257), Protocol::kLL, gpus(257, 4096), false), kLargestElement);
  try {
    gpu::deviceChunkBytes(halving(258), Protocol::kLL, gpus(258, 4096), false);
    FAIL() << "a slot of 4096 bytes can not hold 257 elements, each with its flag";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidUsage);
    EXPECT_NE(std::string(error.what()).find("all-gather by halving over ll on 258 GPUs puts 257 segments"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tutti

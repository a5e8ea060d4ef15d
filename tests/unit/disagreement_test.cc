// Ranks of which one runs a call in another way than the rest: by another algorithm, over other channels, with the
// ranks grouped otherwise. However that comes about, no rank ends with a success and a wrong result: slots say how
// their sender runs the call.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <tuple>

#include "comm/plans.h"
#include "engine/lane.h"
#include "schedule/algorithm.h"
#include "support/sanitized.h"
#include "team/call.h"

namespace tutti::comm {
namespace {

using engine::LaneState;
using schedule::Algorithm;

constexpr uint32_t kSlotBytes = 1 << 10, kDepth = 8;

struct Way {
  Algorithm algorithm = Algorithm::kRing;
  uint32_t channels = 1;
  int groupSize = 0;  // 0: all ranks together
  friend bool operator==(const Way&, const Way&) = default;
};

std::string nameOf(const Way& way) {
  return std::string(nameOf(way.algorithm)) + "/" + std::to_string(way.channels) + "/" + std::to_string(way.groupSize);
}

std::vector<Way> waysOf(Collective collective) {
  std::vector<Way> ways;
  for (const Algorithm algorithm : schedule::algorithmsFor(collective))
    for (const uint32_t channels : {1u, 2u}) {
      ways.push_back({algorithm, channels, 0});
      if (algorithm == Algorithm::kHierarchical) ways.push_back({algorithm, channels, 2});
    }
  return ways;
}

// The memory of every link that any schedule names, made as it is asked for.
class Wires {
 public:
  link::Fifo fifo(int from, int to, int channel) {
    auto& memory = memory_[{from, to, channel}];
    if (!memory) memory.reset(new (std::align_val_t(128)) std::byte[link::Fifo::bytesFor(kSlotBytes, kDepth)]());
    return link::Fifo::over(memory.get(), kSlotBytes, kDepth);
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(128)); }
  };
  std::map<std::tuple<int, int, int>, std::unique_ptr<std::byte[], Free>> memory_;
};

// One rank's lanes of one call.
class Player {
 public:
  Player(Wires& wires, Call call, const Way& way, int rank, int size)
      : schedule_(schedule::build(way.algorithm, layoutOf(call, way, size), rank)),
        ins_(way.channels),
        outs_(way.channels),
        bindings_(way.channels),
        lanes_(way.channels),
        states_(way.channels, LaneState::kBlocked) {
    for (uint32_t c = 0; c < way.channels; ++c) {
      bind(wires, static_cast<int>(c), rank);
      lanes_[c].start(bindings_[c], toWork(call, 0, schedule_, chunkBytesOf(schedule_, kSlotBytes), c, way.channels));
    }
  }

  bool advance() {
    bool moved = false;
    for (size_t c = 0; c < lanes_.size(); ++c)
      if (states_[c] == LaneState::kBlocked) states_[c] = lanes_[c].run(moved);
    return moved;
  }
  bool done() const {
    return std::ranges::all_of(states_, [](LaneState state) { return state == LaneState::kDone; });
  }

 private:
  static schedule::Shape layoutOf(const Call& call, const Way& way, int size) {
    schedule::Shape shape{call.collective, size, call.root, {}};
    for (int rank = 0; rank < size; ++rank) shape.groupOf.push_back(way.groupSize == 0 ? 0 : rank / way.groupSize);
    return shape;
  }

  void bind(Wires& wires, int channel, int rank) {
    auto& ins = ins_[static_cast<size_t>(channel)];
    auto& outs = outs_[static_cast<size_t>(channel)];
    engine::Binding& binding = bindings_[static_cast<size_t>(channel)];
    for (const int peer : schedule_.inPeers) ins.push_back({.fifo = wires.fifo(peer, rank, channel), .peer = peer});
    for (const int peer : schedule_.outPeers) outs.push_back({.fifo = wires.fifo(rank, peer, channel), .peer = peer});
    binding.schedule = &schedule_;
    for (auto& end : ins) binding.ins.push_back(&end);
    for (auto& end : outs) binding.outs.push_back(&end);
    binding.prepare(kSlotBytes);
  }

  schedule::Schedule schedule_;
  std::vector<std::vector<link::RecvEnd>> ins_;
  std::vector<std::vector<link::SendEnd>> outs_;
  std::vector<engine::Binding> bindings_;
  std::vector<engine::Lane> lanes_;
  std::vector<LaneState> states_;
};

struct Outcome {
  int done = 0;
  bool right = true;  // what those have that are done
};

// Sums of floats that are exact in any order; rank r of a segment's owner s has r * 100 + s of it.
class Job {
 public:
  Job(Collective collective, int size, size_t count) : collective_(collective), size_(size), count_(count) {
    const size_t parts = perRank() ? static_cast<size_t>(size) : 1;
    for (int rank = 0; rank < size; ++rank) {
      inputs_.emplace_back(count * parts);
      outputs_.emplace_back(count * parts, -1.0f);
      for (size_t i = 0; i < inputs_.back().size(); ++i) inputs_.back()[i] = value(rank, i);
    }
  }

  Outcome run(const std::vector<Way>& ways) {
    Wires wires;
    std::vector<std::unique_ptr<Player>> players;
    for (int rank = 0; rank < size_; ++rank)
      players.push_back(std::make_unique<Player>(wires, callOf(rank), ways[static_cast<size_t>(rank)], rank, size_));
    for (bool moved = true; std::exchange(moved, false);)
      for (auto& player : players) moved = player->advance() || moved;
    Outcome outcome;
    for (int rank = 0; rank < size_; ++rank) {
      if (!players[static_cast<size_t>(rank)]->done()) continue;
      ++outcome.done;
      outcome.right = outcome.right && isRight(rank);
    }
    return outcome;
  }

 private:
  bool perRank() const { return collective_ == Collective::kAllGather || collective_ == Collective::kReduceScatter; }
  static float value(int rank, size_t i) { return static_cast<float>(1 + rank * 1000 + static_cast<int>(i % 97)); }

  Call callOf(int rank) {
    Call call;
    call.collective = collective_;
    call.type = DataType::kFloat32;
    call.send = reinterpret_cast<const std::byte*>(inputs_[static_cast<size_t>(rank)].data());
    call.recv = reinterpret_cast<std::byte*>(outputs_[static_cast<size_t>(rank)].data());
    call.count = count_;
    return call;
  }

  float due(int rank, size_t i) const {
    if (collective_ == Collective::kAllGather) return value(static_cast<int>(i / count_), i % count_);
    if (collective_ == Collective::kBroadcast) return value(0, i);
    float sum = 0;
    const size_t at = collective_ == Collective::kReduceScatter ? static_cast<size_t>(rank) * count_ + i : i;
    for (int r = 0; r < size_; ++r) sum += value(r, at);
    return sum;
  }

  bool isRight(int rank) const {
    if (collective_ == Collective::kReduce && rank != 0) return true;
    const size_t elements = collective_ == Collective::kAllGather ? count_ * static_cast<size_t>(size_) : count_;
    for (size_t i = 0; i < elements; ++i)
      if (outputs_[static_cast<size_t>(rank)][i] != due(rank, i)) return false;
    return true;
  }

  Collective collective_;
  int size_;
  size_t count_;
  std::vector<std::vector<float>> inputs_, outputs_;
};

class Disagreement : public testing::TestWithParam<Collective> {};

// One thread runs all of it: a sanitizer has seen it all after a few.
const std::vector<int> kSizes = kSanitized ? std::vector<int>{3} : std::vector<int>{2, 3, 4};
const std::vector<size_t> kCounts = kSanitized ? std::vector<size_t>{2, 700} : std::vector<size_t>{1, 2, 3, 4, 33, 700};

TEST_P(Disagreement, NeverEndsAsSuccessWithAWrongResult) {
  const auto ways = waysOf(GetParam());
  for (const int size : kSizes)
    for (const size_t count : kCounts)
      for (const Way& most : ways)
        for (const Way& one : ways) {
          std::vector<Way> all(static_cast<size_t>(size), most);
          all[count % static_cast<size_t>(size)] = one;
          const Outcome outcome = Job(GetParam(), size, count).run(all);
          ASSERT_TRUE(outcome.right) << nameOf(one) << " among " << size << " with " << nameOf(most) << ", " << count;
          if (one == most) {
            ASSERT_EQ(outcome.done, size) << nameOf(one) << " on " << size << " ranks, " << count;
          }
        }
}

INSTANTIATE_TEST_SUITE_P(Of, Disagreement,
                         testing::Values(Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                                         Collective::kBroadcast, Collective::kReduce),
                         [](const auto& test) {
                           std::string name(nameOf(test.param));
                           std::erase(name, '-');
                           return name;
                         });

// A way and none, and one way twice.
TEST(DisagreementText, TellsHowEachRunsTheCall) {
  Call call;
  call.type = DataType::kFloat32;
  call.count = 3;
  const schedule::Schedule ring = schedule::build(Algorithm::kRing, {Collective::kAllReduce, 4, 0, {}}, 0);
  const schedule::Schedule hosts =
      schedule::build(Algorithm::kHierarchical, {Collective::kAllReduce, 4, 0, {0, 0, 1, 1}}, 0);
  const schedule::Schedule others =
      schedule::build(Algorithm::kHierarchical, {Collective::kAllReduce, 4, 0, {0, 1, 1, 1}}, 0);
  const auto plain = call.fingerprint(7);
  const auto mark = planned(plain, ring, 2);
  EXPECT_EQ(describePlan(mark), "ring over 2 channels");
  EXPECT_EQ(describePlan(plain), "an unknown algorithm");
  EXPECT_EQ(describe(mark), describe(plain));
  EXPECT_EQ(mark.call(), plain);
  EXPECT_NE(mark, planned(plain, ring, 1));
  EXPECT_NE(planned(plain, hosts, 1), planned(plain, others, 1));
  EXPECT_TRUE(describePlan(planned(plain, hosts, 1)).starts_with("hierarchical (grouping ")) << describePlan(mark);
}

}  // namespace
}  // namespace tutti::comm

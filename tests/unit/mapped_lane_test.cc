// Lanes whose operands lie in a window that their peers have mapped: read in place, by copies and by sums.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/lane.h"
#include "schedule/algorithm.h"
#include "team/call.h"
#include "window/own_window.h"

namespace tutti::engine {
namespace {

using link::PayloadLocation;
using schedule::Algorithm;
using window::OwnWindow;
using window::View;

constexpr uint32_t kSlotBytes = 8 << 10, kDepth = 4;
constexpr size_t kCount = 40'003;  // 32-bit integers: pieces are no whole slots

std::shared_ptr<View> ownView() {
  std::string why;
  const int file = OwnWindow::ofProcess().fileForPeers(why);
  auto view = View::of(UniqueFd(::fcntl(file, F_DUPFD_CLOEXEC, 0)), why);
  EXPECT_NE(view, nullptr) << why;
  return view;
}

// A buffer in the window, or in ordinary memory.
class Memory {
 public:
  Memory(size_t count, bool mapped) : plain_(mapped ? 0 : count) {
    if (mapped) window_ = OwnWindow::ofProcess().allocate(count * sizeof(int32_t));
  }
  int32_t* data() { return window_ ? static_cast<int32_t*>(window_.get()) : plain_.data(); }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(data()); }

 private:
  std::vector<int32_t> plain_;
  std::shared_ptr<void> window_;
};

struct alignas(128) Line {
  std::byte bytes[128];
};

// Where a rank's buffers are.
enum class Where { kPlain, kMapped, kMappedInPlace };

// All ranks of a collective of integers, in this thread, over FIFOs between each two.
class Job {
 public:
  Job(Collective collective, Algorithm algorithm, const std::vector<Where>& where)
      : collective_(collective), size_(static_cast<int>(where.size())), view_(ownView()) {
    schedule::Shape shape;
    shape.collective = collective;
    shape.size = size_;
    ranks_.reserve(where.size());
    for (int rank = 0; rank < size_; ++rank) {
      const bool isMapped = where[static_cast<size_t>(rank)] != Where::kPlain;
      auto& one = ranks_.emplace_back(std::make_unique<Rank>(
          schedule::build(algorithm, shape, rank), kCount * where.size(), isMapped, where[static_cast<size_t>(rank)]));
      for (size_t i = 0; i < kCount * where.size(); ++i) one->input().data()[i] = inputOf(rank, i);
    }
    for (auto& one : ranks_) connect(*one);
  }
  // Without the view of the others' windows.
  void blind(int rank) {
    for (auto& end : ranks_[static_cast<size_t>(rank)]->recv) {
      end->window = nullptr;
      end->fifo.released->readsSender.store(0);
    }
  }
  void start() {
    for (auto& one : ranks_) {
      comm::Call call;
      call.collective = collective_;
      call.type = DataType::kInt32;
      call.count = kCount;
      call.send = one->input().bytes();
      call.recv = one->output.bytes();
      Binding& binding = one->binding;
      binding.schedule = &one->schedule;
      binding.singleCopy = link::SingleCopy::kWhereFaster;
      binding.directSlots = &direct_;
      for (auto& end : one->recv) binding.ins.push_back(end.get());
      for (auto& end : one->send) binding.outs.push_back(end.get());
      binding.prepare(kSlotBytes);
      one->lane.start(binding, comm::toWork(call, 0, one->schedule, kSlotBytes / one->schedule.maxSpan, 0, 1));
    }
  }
  LaneState run(int rank) {
    bool moved = false;
    return lane(rank).run(moved);
  }
  void runAll() {
    std::vector<LaneState> states(ranks_.size(), LaneState::kBlocked);
    for (int turns = 0; turns < 10'000; ++turns)
      for (int rank = 0; rank < size_; ++rank)
        if (auto& state = states[static_cast<size_t>(rank)]; state == LaneState::kBlocked) state = run(rank);
    for (int rank = 0; rank < size_; ++rank)
      EXPECT_EQ(states[static_cast<size_t>(rank)], LaneState::kDone) << lane(rank).failure().text;
  }
  void expectSums() {
    for (auto& one : ranks_)
      for (size_t i = 0; i < kCount; ++i) {
        int32_t sum = 0;
        for (int rank = 0; rank < size_; ++rank) sum += inputOf(rank, i);
        ASSERT_EQ(one->output.data()[i], sum) << "rank " << one->schedule.rank << " at " << i;
      }
  }
  static int32_t inputOf(int rank, size_t i) { return static_cast<int32_t>(i * 7919) ^ (rank * 0x01010101); }

  Lane& lane(int rank) { return ranks_[static_cast<size_t>(rank)]->lane; }
  link::RecvEnd& in(int rank) { return *ranks_[static_cast<size_t>(rank)]->recv.front(); }
  uint64_t direct() const { return direct_; }

 private:
  struct Rank {
    Rank(schedule::Schedule made, size_t count, bool isMapped, Where where)
        : schedule(std::move(made)),
          own(count, isMapped),
          output(count, isMapped),
          inPlace(where == Where::kMappedInPlace) {}
    Memory& input() { return inPlace ? output : own; }
    schedule::Schedule schedule;
    Memory own, output;
    bool inPlace;
    std::vector<std::unique_ptr<link::RecvEnd>> recv;
    std::vector<std::unique_ptr<link::SendEnd>> send;
    Binding binding;
    Lane lane;
  };

  const link::Fifo& fifo(int from, int to) {
    auto& memory = links_[static_cast<size_t>(from * size_ + to)];
    if (memory.lines.empty()) {
      memory.lines.resize(link::Fifo::bytesFor(kSlotBytes, kDepth) / sizeof(Line));
      memory.fifo = link::Fifo::over(memory.lines.front().bytes, kSlotBytes, kDepth);
    }
    return memory.fifo;
  }
  void connect(Rank& one) {
    if (links_.empty()) links_.resize(static_cast<size_t>(size_ * size_));
    const int rank = one.schedule.rank;
    for (const int peer : one.schedule.inPeers) {
      auto& end = one.recv.emplace_back(std::make_unique<link::RecvEnd>());
      end->fifo = fifo(peer, rank);
      end->peer = peer;
      end->window = view_.get();
      end->fifo.released->readsSender.store(link::kMapped);
    }
    for (const int peer : one.schedule.outPeers) {
      auto& end = one.send.emplace_back(std::make_unique<link::SendEnd>());
      end->fifo = fifo(rank, peer);
      end->peer = peer;
    }
  }

  struct Shared {
    std::vector<Line> lines;
    link::Fifo fifo;
  };
  Collective collective_;
  int size_;
  std::shared_ptr<View> view_;
  std::vector<Shared> links_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::atomic<uint64_t> direct_{0};
};

std::vector<Where> all(size_t ranks, Where where) { return std::vector<Where>(ranks, where); }

TEST(MappedLane, SumsAreMadeOfWhatLiesAtThePeers) {
  for (const Algorithm algorithm : schedule::algorithmsFor(Collective::kAllReduce))
    for (const size_t ranks : {2u, 3u, 4u}) {
      Job job(Collective::kAllReduce, algorithm, all(ranks, Where::kMapped));
      job.start();
      job.runAll();
      job.expectSums();
      EXPECT_GT(job.direct(), 0u) << schedule::nameOf(algorithm) << " of " << ranks;
    }
}

TEST(MappedLane, InPlaceToo) {
  for (const Algorithm algorithm : schedule::algorithmsFor(Collective::kAllReduce))
    for (const size_t ranks : {2u, 3u, 4u}) {
      Job job(Collective::kAllReduce, algorithm, all(ranks, Where::kMappedInPlace));
      job.start();
      job.runAll();
      job.expectSums();
      // What one shot lends, it writes over.
      EXPECT_EQ(job.direct() == 0, algorithm == Algorithm::kOneShot) << schedule::nameOf(algorithm) << " of " << ranks;
    }
}

TEST(MappedLane, EachRankRegistersAsItLikes) {
  for (const Algorithm algorithm : schedule::algorithmsFor(Collective::kAllReduce))
    for (const auto& where : {std::vector{Where::kPlain, Where::kMapped, Where::kMappedInPlace},
                              std::vector{Where::kMappedInPlace, Where::kPlain, Where::kPlain},
                              std::vector{Where::kMapped, Where::kMappedInPlace, Where::kMapped}}) {
      Job job(Collective::kAllReduce, algorithm, where);
      job.start();
      job.runAll();
      job.expectSums();
    }
}

TEST(MappedLane, WhoHasNotMappedItGetsSlots) {
  Job job(Collective::kAllReduce, Algorithm::kTwoShot, all(3, Where::kMapped));
  job.blind(1);
  job.start();
  job.runAll();
  job.expectSums();
  const uint64_t some = job.direct();
  EXPECT_GT(some, 0u);
  Job none(Collective::kAllReduce, Algorithm::kTwoShot, all(3, Where::kMapped));
  for (int rank = 0; rank < 3; ++rank) none.blind(rank);
  none.start();
  none.runAll();
  none.expectSums();
  EXPECT_EQ(none.direct(), 0u);
}

TEST(MappedLane, TheCallEndsWhenNobodyReadsItsBufferAnyMore) {
  Job job(Collective::kReduceScatter, Algorithm::kDirect, all(2, Where::kMapped));
  job.start();
  EXPECT_EQ(job.run(0), LaneState::kBlocked);
  EXPECT_EQ(job.in(1).carried(), PayloadLocation::kAtSender);
  EXPECT_EQ(job.in(1).lentAt().window, link::kWindow);
  LaneState first = LaneState::kBlocked, second = LaneState::kBlocked;
  bool waited = false;
  while (second == LaneState::kBlocked) {
    second = job.run(1);
    waited |= first == LaneState::kBlocked && job.lane(0).roundsDone() == job.lane(0).rounds();
    if (first == LaneState::kBlocked) first = job.run(0);
    EXPECT_TRUE(first == LaneState::kBlocked || second == LaneState::kDone) << "it has not read all";
  }
  EXPECT_EQ(second, LaneState::kDone);
  EXPECT_EQ(first == LaneState::kDone ? first : job.run(0), LaneState::kDone);
  EXPECT_TRUE(waited) << "all was posted before";
}

// Its caller may do what it likes with the buffer once the call has failed.
TEST(MappedLane, WhatIsTakenBackIsNotTaken) {
  Job job(Collective::kAllReduce, Algorithm::kTwoShot, all(2, Where::kMapped));
  job.start();
  job.run(0);
  job.lane(0).takeBack();
  EXPECT_EQ(job.run(1), LaneState::kFailed);
  EXPECT_EQ(job.lane(1).failure().kind, LaneFailure::Kind::kLink);
  EXPECT_EQ(job.lane(1).failure().peer, 0);
  EXPECT_NE(job.lane(1).failure().text.find("its call failed"), std::string::npos) << job.lane(1).failure().text;
}

// What a peer says of itself is judged before anything is read.
TEST(MappedLane, APlaceThatIsNoneIsRefused) {
  constexpr uint64_t kBeyond = window::kMostBytes * 2;
  for (const auto& [lent, says] : std::vector<std::pair<link::RemoteAddress, const char*>>{
           {{0, link::kWindow}, "outside of the memory"},
           {{kBeyond, link::kWindow}, "outside of the memory"},
           {{UINT64_MAX - 100, link::kWindow}, "outside of the memory"},
           {{window::kPieceBytes, link::kWindow + 1}, "where this rank cannot read it"},
           {{window::kPieceBytes, UINT64_MAX}, "where this rank cannot read it"},
           {{window::kPieceBytes, 0}, "where this rank cannot read it"}}) {
    Job job(Collective::kAllReduce, Algorithm::kTwoShot, all(2, Where::kMapped));
    job.start();
    job.run(0);
    std::memcpy(job.in(1).fifo.headers[0].inlined, &lent, sizeof lent);
    EXPECT_EQ(job.run(1), LaneState::kFailed) << lent.at << ' ' << lent.window;
    EXPECT_EQ(job.lane(1).failure().peer, 0);
    EXPECT_NE(job.lane(1).failure().text.find(says), std::string::npos) << job.lane(1).failure().text;
  }
}

TEST(MappedLane, WhoHasNoWindowMappedRefusesAll) {
  Job job(Collective::kAllReduce, Algorithm::kTwoShot, all(2, Where::kMapped));
  job.start();
  job.run(0);
  job.in(1).window = nullptr;
  EXPECT_EQ(job.run(1), LaneState::kFailed);
  EXPECT_NE(job.lane(1).failure().text.find("where this rank cannot read it"), std::string::npos);
}

}  // namespace
}  // namespace tutti::engine

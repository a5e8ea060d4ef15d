// All ranks of a collective of integers on one thread, each with a lane, over FIFOs in ordinary memory: buffers may lie
// in the window that all have mapped, and each rank may have shared slots.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "engine/lane.h"
#include "engine/waiter.h"
#include "schedule/algorithm.h"
#include "team/call.h"
#include "window/own_window.h"

namespace tutti::test::lanes {

using engine::Binding;
using engine::Lane;
using engine::LaneState;
using schedule::Algorithm;
using window::OwnWindow;
using window::View;

inline constexpr uint32_t kSlotBytes = 8 << 10, kDepth = 4, kLines = 16;
inline constexpr size_t kCount = 40'003;  // 32-bit integers: pieces are no whole slots

inline std::shared_ptr<View> ownView() {
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
  // What goes to several is written once.
  void shareSlots() {
    for (auto& one : ranks_) {
      one->sharedMemory.resize(link::SharedSlots::kMemoryBytes);
      one->shared.emplace(one->sharedMemory.data(), ranks_.size());
    }
    for (auto& one : ranks_)
      for (auto& end : one->recv) {
        end->shared = ranks_[static_cast<size_t>(end->peer)]->sharedMemory.data();
        end->fifo.released->readsSender.fetch_or(link::kShared);
      }
  }
  link::SharedSlots& shared(int rank) { return *ranks_[static_cast<size_t>(rank)]->shared; }
  void start(engine::Crowd* crowd = nullptr) {
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
      binding.crowd = crowd;
      if (one->shared) binding.sharedSlots = &*one->shared;
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
        uint32_t sum = 0;  // integers wrap
        for (int rank = 0; rank < size_; ++rank) sum += static_cast<uint32_t>(inputOf(rank, i));
        ASSERT_EQ(static_cast<uint32_t>(one->output.data()[i]), sum) << "rank " << one->schedule.rank << " at " << i;
      }
  }
  static int32_t inputOf(int rank, size_t i) { return static_cast<int32_t>(i * 7919) ^ (rank * 0x01010101); }

  Lane& lane(int rank) { return ranks_[static_cast<size_t>(rank)]->lane; }
  link::RecvEnd& in(int rank) { return *ranks_[static_cast<size_t>(rank)]->recv.front(); }
  link::SendEnd& out(int rank) { return *ranks_[static_cast<size_t>(rank)]->send.front(); }
  const int32_t* output(int rank) { return ranks_[static_cast<size_t>(rank)]->output.data(); }
  size_t leastMapped(int rank) const { return ranks_[static_cast<size_t>(rank)]->binding.leastMapped; }
  std::byte* outputBytes(int rank) { return ranks_[static_cast<size_t>(rank)]->output.bytes(); }
  uint64_t direct() const { return direct_; }
  // Steps that put something into the rank's output, and of those how many have chosen stores for it as for slots.
  struct Puts {
    int steps = 0, chosen = 0;
  };
  Puts putsOf(int rank) const {
    const Rank& one = *ranks_[static_cast<size_t>(rank)];
    Puts puts;
    for (size_t i = 0; i < one.schedule.steps.size(); ++i) {
      if (std::ranges::count(one.schedule.to(one.schedule.steps[i]), schedule::Operand::output()) == 0) continue;
      engine::Stores stores = one.binding.stores[i];
      stores.next();
      ++puts.steps;
      puts.chosen += stores.next().isTry ? 0 : 1;  // the second slot is tried, and no other before the eighth
    }
    return puts;
  }

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
    std::vector<std::byte> sharedMemory;
    std::optional<link::SharedSlots> shared;
    Binding binding;
    Lane lane;
  };

  const link::Fifo& fifo(int from, int to) {
    auto& memory = links_[static_cast<size_t>(from * size_ + to)];
    if (memory.lines.empty()) {
      memory.lines.resize(link::Fifo::bytesFor(kSlotBytes, kDepth, kLines) / sizeof(Line));
      memory.fifo = link::Fifo::over(memory.lines.front().bytes, kSlotBytes, kDepth, kLines);
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

}  // namespace tutti::test::lanes

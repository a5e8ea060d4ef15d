// What a stream is told to do, step by step, by a queue that does it at once.
#include "engine/streamed.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "schedule/builders.h"

namespace tutti::engine {
namespace {

constexpr size_t kBytes = 100, kSlotBytes = 16, kDepth = 2;

// One receive, whose slots are full whenever somebody waits for them.
class StreamedReceive : public ::testing::Test, protected SideQueue {
 protected:
  StreamedReceive() : schedule_(schedule::buildReceive(1, 2, 0)), queue_(*this, whereabouts_, trail_) {
    StreamedWork work;
    work.schedule = &schedule_;
    work.work.output = output_.data();
    work.work.layout.total = work.work.layout.stride = kBytes;
    work.work.layout.chunk = kSlotBytes;
    work.ins = {{slots_.data(), marks_.data(), taken_.data(), kSlotBytes, kDepth, 0}};
    StreamedLane lane(std::move(work));
    for (size_t i = 0; i < lane.iterations(); ++i) lane.queueIteration(i, queue_);
    queue_.end();
  }

  void words(std::span<const WordOp> ops) override {
    for (const WordOp& op : ops) {
      if (op.kind == WordOp::Kind::kWait)
        waited(op);
      else if (isTaken(op.word) && op.value == 0)
        released_.push_back(trail_->at(whereabouts_.position).size());
      *op.word = op.value;
    }
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void fold(const cuda::Fold&) override { FAIL() << "a receive adds nothing up"; }
  void requireAlive() override {}

  void waited(const WordOp& op) {
    const auto here = trail_->at(whereabouts_.position);
    ++waits_;
    ASSERT_EQ(here.size(), 1u);
    EXPECT_EQ(here[0].word, op.word);
    EXPECT_EQ(here[0].value, op.value);
  }
  bool isTaken(const uint64_t* word) const { return word >= taken_.data() && word < taken_.data() + kDepth; }

  schedule::Schedule schedule_;
  std::array<std::byte, kBytes> output_{};
  std::array<std::byte, kSlotBytes * kDepth> slots_{};
  std::array<Mark, kDepth> marks_{};
  std::array<uint64_t, kDepth> taken_{};
  Whereabouts whereabouts_;
  std::shared_ptr<Trail> trail_ = std::make_shared<Trail>(1);
  StreamedQueue queue_;
  int waits_ = 0;
  std::vector<size_t> released_;  // how much was said to be waited for when a slot was given back
};

TEST_F(StreamedReceive, SaysWhatItWaitsFor) { EXPECT_EQ(waits_, 7); }

// The sender may fill it again at once, with something else than what was waited for: whoever looks would find fault.
TEST_F(StreamedReceive, SaysThatItWaitsForNothingWhenItGivesASlotBack) {
  EXPECT_EQ(released_, std::vector<size_t>(7, 0));
  EXPECT_EQ(whereabouts_.position, 0u);
  EXPECT_EQ(whereabouts_.ended, trail_->end());
}

// The places of a graph come again with every replay: that the stream is where it was does not say that it stood there.
TEST(StreamsWhereabouts, StandsWhereItHasNotComeToAnyPlaceSince) {
  Whereabouts whereabouts;
  EXPECT_FALSE(whereabouts.stands());  // at none
  EXPECT_FALSE(whereabouts.stands());
  constexpr uint64_t kPlace = Trail::kOfGraphs + 7;
  whereabouts.position = kPlace;
  EXPECT_FALSE(whereabouts.stands());
  EXPECT_TRUE(whereabouts.stands());
  EXPECT_TRUE(whereabouts.stands());
  EXPECT_EQ(whereabouts.place(), kPlace);
  whereabouts.position = kPlace + 1;  // it goes on, and a replay comes to the same place
  whereabouts.position = kPlace;
  EXPECT_FALSE(whereabouts.stands());
  EXPECT_TRUE(whereabouts.stands());
  whereabouts.position = 0;
  EXPECT_FALSE(whereabouts.stands());
}

}  // namespace
}  // namespace tutti::engine

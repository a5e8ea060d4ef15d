// What a stream is told to do, step by step, by a queue that does it at once.
#include "engine/streamed.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "schedule/algorithm.h"

namespace tutti::engine {
namespace {

constexpr size_t kBytes = 100, kSlotBytes = 16, kDepth = 2;

// One receive, whose slots are full whenever somebody waits for them.
class StreamedReceive : public ::testing::Test, protected device::SideQueue {
 protected:
  StreamedReceive() : schedule_(schedule::buildReceive(1, 2, 0)), queue_(*this, cursor_, journal_) {
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

  void words(std::span<const device::WordOp> ops) override {
    for (const device::WordOp& op : ops) {
      if (op.kind == device::WordOp::Kind::kWait)
        waited(op);
      else if (isTaken(op.word) && op.value == 0)
        released_.push_back(journal_->at(cursor_.position).size());
      *op.word = op.value;
    }
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void fold(const device::Fold&) override { FAIL() << "a receive adds nothing up"; }
  void requireAlive() override {}

  void waited(const device::WordOp& op) {
    const auto here = journal_->at(cursor_.position);
    ++waits_;
    ASSERT_EQ(here.size(), 1u);
    EXPECT_EQ(here[0].word, op.word);
    EXPECT_EQ(here[0].value, op.value);
  }
  bool isTaken(const uint64_t* word) const { return word >= taken_.data() && word < taken_.data() + kDepth; }

  schedule::Schedule schedule_;
  std::array<std::byte, kBytes> output_{};
  std::array<std::byte, kSlotBytes * kDepth> slots_{};
  std::array<SlotFlag, kDepth> marks_{};
  std::array<uint64_t, kDepth> taken_{};
  StreamCursor cursor_;
  std::shared_ptr<WaitJournal> journal_ = std::make_shared<WaitJournal>(1);
  StreamedQueue queue_;
  int waits_ = 0;
  std::vector<size_t> released_;  // how much was said to be waited for when a slot was given back
};

TEST_F(StreamedReceive, SaysWhatItWaitsFor) { EXPECT_EQ(waits_, 7); }

// The sender may fill it again at once, with something else than what was waited for: whoever looks would find fault.
TEST_F(StreamedReceive, SaysThatItWaitsForNothingWhenItGivesASlotBack) {
  EXPECT_EQ(released_, std::vector<size_t>(7, 0));
  EXPECT_EQ(cursor_.position, 0u);
  EXPECT_EQ(cursor_.ended, journal_->end());
}

// Notes what is written, and waits for nothing.
class Notes : public device::SideQueue {
 public:
  void words(std::span<const device::WordOp> ops) override {
    for (const device::WordOp& op : ops)
      if (op.kind == device::WordOp::Kind::kWrite) *op.word = op.value;
  }
  void copy(std::byte*, const std::byte*, size_t) override {}
  void fold(const device::Fold&) override {}
  void requireAlive() override {}
};

// What a sender of so many bytes, which are a part with a count of its own, leaves in the receiver's first slot.
SlotFlag firstMarkOf(size_t count) {
  const schedule::Schedule schedule = schedule::buildSend(0, 2, 1);
  const std::vector<size_t> counts(schedule.segments, count), places(schedule.segments, 0);
  std::array<std::byte, kBytes> input{};
  std::array<std::byte, kSlotBytes * 8> slots{};
  std::array<SlotFlag, 8> marks{};
  std::array<uint64_t, 8> taken{};
  StreamedWork work;
  work.schedule = &schedule;
  work.work.input = input.data();
  work.work.layout.segments = schedule.segments;
  work.work.layout.inputCounts = work.work.layout.outputCounts = counts.data();
  work.work.layout.inputOffsets = work.work.layout.outputOffsets = places.data();
  work.work.layout.chunk = kSlotBytes;
  work.work.layout.speaks = true;
  work.outs = {{slots.data(), marks.data(), taken.data(), kSlotBytes, 8, 1}};
  Notes notes;
  StreamCursor cursor;
  StreamedQueue queue(notes, cursor, std::make_shared<WaitJournal>(1));
  StreamedLane lane(std::move(work));
  for (size_t i = 0; i < lane.iterations(); ++i) lane.queueIteration(i, queue);
  queue.end();
  return marks[0];
}

// All but the operation's number, which a graph's replays do not have.
TEST(StreamedStamps, GoByEveryBitOfTheCall) {
  link::Fingerprint mark, numbered;
  numbered.operation = ~0u;
  EXPECT_EQ(tagOf(numbered, 0), tagOf(mark, 0));
  for (uint32_t bit = 0; bit < 128; ++bit) {
    link::Fingerprint::Words words{};
    words[bit / 64] = uint64_t{1} << bit % 64;
    const link::Fingerprint other = fingerprintOf(words[0], words[1]);
    EXPECT_EQ(tagOf(other, 0) == tagOf(mark, 0), other.operation != 0) << "bit " << bit;
  }
}

// Stamps have no number: a slot that the receiver did not expect would be taken for one of the next call.
TEST(StreamedParts, TellInTheFirstSlotHowMuchThereIs) {
  EXPECT_EQ(firstMarkOf(0).full, tagOf({}, 0));
  EXPECT_EQ(firstMarkOf(kSlotBytes).full, tagOf({}, kSlotBytes));
  EXPECT_EQ(firstMarkOf(3 * kSlotBytes).full, tagOf({}, 3 * kSlotBytes));
  EXPECT_EQ(firstMarkOf(3 * kSlotBytes).bytes, 3 * kSlotBytes);
}

// The places of a graph come again with every replay: that the stream is where it was does not say that it stood there.
TEST(StreamsCursor, StandsWhereItHasNotComeToAnyPlaceSince) {
  StreamCursor cursor;
  EXPECT_FALSE(cursor.stands());  // at none
  EXPECT_FALSE(cursor.stands());
  constexpr uint64_t kPlace = WaitJournal::kOfGraphs + 7;
  cursor.position = kPlace;
  EXPECT_FALSE(cursor.stands());
  EXPECT_TRUE(cursor.stands());
  EXPECT_TRUE(cursor.stands());
  EXPECT_EQ(cursor.place(), kPlace);
  cursor.position = kPlace + 1;  // it goes on, and a replay comes to the same place
  cursor.position = kPlace;
  EXPECT_FALSE(cursor.stands());
  EXPECT_TRUE(cursor.stands());
  cursor.position = 0;
  EXPECT_FALSE(cursor.stands());
}

}  // namespace
}  // namespace tutti::engine

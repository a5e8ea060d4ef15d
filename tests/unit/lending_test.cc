// What is read where it lies in another rank's memory: the reading itself, and lanes that lend.
#include "engine/lending.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "engine/lane.h"
#include "link/peer_memory.h"
#include "schedule/algorithm.h"
#include "team/call.h"

namespace tutti::engine {
namespace {

using link::Mark;
using link::MarkNote;
using link::PeerMemory;

// --- reading ---

// A child that has what this process had when it was made, and a mark of its own, until it is killed.
class Child {
 public:
  Child() {
    auto* const shared = static_cast<Shared*>(
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pid_ = ::fork();
    if (pid_ == 0) {
      const Mark own;
      shared->note = own.note();
      shared->isThere = true;
      for (;;) ::pause();
    }
    while (!shared->isThere) ::usleep(1000);
    note_ = shared->note;
    ::munmap(shared, sizeof(Shared));
  }
  ~Child() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  int pid() const { return pid_; }
  const MarkNote& note() const { return note_; }

 private:
  struct Shared {
    MarkNote note;
    std::atomic<bool> isThere;
  };
  pid_t pid_ = 0;
  MarkNote note_;
};

class PeerMemoryTest : public testing::Test {
 protected:
  PeerMemoryTest() {
    for (size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<std::byte>(i * 7);
    std::string why;
    peer_ = PeerMemory::of(::getpid(), mark_.note(), why);
  }
  void SetUp() override {
    if (peer_ == nullptr) GTEST_SKIP() << "process_vm_readv is not permitted here";
  }
  static uint64_t at(const void* place) { return reinterpret_cast<uint64_t>(place); }

  Mark mark_;
  std::vector<std::byte> data_ = std::vector<std::byte>(100'000);
  std::unique_ptr<PeerMemory> peer_;
};

TEST_F(PeerMemoryTest, ReadsWhatIsThereUntilThePeerIsGone) {
  Child child;
  std::string why;
  const auto peer = PeerMemory::of(child.pid(), child.note(), why);
  ASSERT_NE(peer, nullptr) << why;
  std::vector<std::byte> got(data_.size());
  EXPECT_TRUE(peer->read(got.data(), at(data_.data()), data_.size()));
  EXPECT_EQ(got, data_);
  data_[0] = std::byte{1};  // here, not there
  EXPECT_TRUE(peer->read(got.data(), at(data_.data()), 1));
  EXPECT_EQ(got[0], std::byte{0});
  child.end();
  EXPECT_FALSE(peer->read(got.data(), at(data_.data()), data_.size()));
  EXPECT_NE(peer->error().find("No such process"), std::string::npos) << peer->error();
}

TEST_F(PeerMemoryTest, AnotherProcessIsNotThePeer) {
  Child child;
  const Mark younger;  // the child has none there
  std::string why;
  EXPECT_EQ(PeerMemory::of(child.pid(), younger.note(), why), nullptr);
  EXPECT_FALSE(why.empty());
  EXPECT_EQ(PeerMemory::of(child.pid(), mark_.note(), why), nullptr) << "a child had its parent's mark";
  EXPECT_NE(why.find("is not the peer"), std::string::npos) << why;
  MarkNote wrong = child.note();
  wrong.value[1] ^= 1;
  EXPECT_EQ(PeerMemory::of(child.pid(), wrong, why), nullptr);
  EXPECT_NE(why.find("is not the peer"), std::string::npos) << why;
}

TEST_F(PeerMemoryTest, WhatIsNotMappedIsAnError) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const two = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(two, MAP_FAILED);
  ::munmap(static_cast<std::byte*>(two) + page, page);
  std::vector<std::byte> got(2 * page);
  EXPECT_TRUE(peer_->read(got.data(), at(two), page));
  EXPECT_FALSE(peer_->read(got.data(), at(two), 2 * page)) << "half of it is there";
  EXPECT_NE(peer_->error().find("Bad address"), std::string::npos) << peer_->error();
  EXPECT_FALSE(peer_->read(got.data(), 0, page));
  ::munmap(two, page);
}

TEST_F(PeerMemoryTest, WhatOthersCannotReadIsKnownBefore) {
  EXPECT_TRUE(link::isReadable(data_.data(), data_.size()));
  EXPECT_TRUE(link::isReadable(nullptr, 0));
  EXPECT_FALSE(link::isReadable(nullptr, 1));
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const hidden = ::mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hidden, MAP_FAILED);
  EXPECT_FALSE(link::isReadable(static_cast<std::byte*>(hidden), page));
  ::munmap(hidden, page);
}

// The kernel is asked about a buffer once, and about every other one.
TEST_F(PeerMemoryTest, WhatCanBeReadIsRemembered) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto size = 2 * page;
  auto* const memory =
      static_cast<std::byte*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  link::KnownReadable known;
  EXPECT_TRUE(known.is(memory, size));
  ASSERT_EQ(::mprotect(memory + page, page, PROT_NONE), 0);
  EXPECT_TRUE(known.is(memory, size)) << "it was asked again";
  EXPECT_FALSE(known.is(memory + 1, size - 1)) << "another one";
  EXPECT_TRUE(known.is(memory + 1, page - 1));
  EXPECT_FALSE(known.is(memory, size)) << "only the last one is remembered";
  ::munmap(memory, size);
}

TEST_F(PeerMemoryTest, OfLongBuffersTheKernelIsAskedEachTime) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto size = link::KnownReadable::kMostBytes + page;
  auto* const memory =
      static_cast<std::byte*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  link::KnownReadable known;
  EXPECT_TRUE(known.is(memory, size));
  ASSERT_EQ(::mprotect(memory, page, PROT_NONE), 0);
  EXPECT_FALSE(known.is(memory, size));
  ::munmap(memory, size);
}

// --- lanes ---

// Rank 0 sends a message to rank 1, over one FIFO in memory that both have.
class Lenders : public testing::Test {
 protected:
  static constexpr uint32_t kSlotBytes = 8 << 10, kDepth = 2;
  static constexpr size_t kBytes = 5 * kSlotBytes + 12;  // the last piece is a small one

  Lenders() : memory_(link::Fifo::bytesFor(kSlotBytes, kDepth) / sizeof(Line)) {
    for (size_t i = 0; i < kBytes; ++i) input_[i] = static_cast<std::byte>(i * 13 + i / 251);
    out_.fifo = in_.fifo = link::Fifo::over(memory_.front().bytes, kSlotBytes, kDepth);
    out_.peer = 1, in_.peer = 0;
    std::string why;
    own_ = PeerMemory::of(::getpid(), mark_.note(), why);
    in_.memory = own_.get();
    in_.fifo.released->readsSender.store(1);
    start(sender_, sending_, sends_, true);
    start(receiver_, receiving_, receives_, false);
  }
  void SetUp() override {
    if (own_ == nullptr) GTEST_SKIP() << "process_vm_readv is not permitted here";
  }
  void start(Lane& lane, Binding& binding, const schedule::Schedule& schedule, bool sends) {
    comm::Call call;
    call.collective = Collective::kSendRecv;
    call.sends = sends;
    if (sends)
      call.send = input_.data();
    else
      call.recv = output_.data();
    call.count = kBytes;
    binding.schedule = &schedule;
    binding.singleCopy = link::SingleCopy::kAlways;
    if (sends)
      binding.outs = {&out_};
    else
      binding.ins = {&in_};
    binding.prepare(kSlotBytes);
    lane.start(binding, comm::toWork(call, 0, schedule, kSlotBytes, 0, 1));
  }
  static LaneState run(Lane& lane) {
    bool moved = false;
    return lane.run(moved);
  }

  struct alignas(128) Line {
    std::byte bytes[128];
  };
  Mark mark_;
  std::unique_ptr<PeerMemory> own_;
  std::vector<Line> memory_;
  std::vector<std::byte> input_ = std::vector<std::byte>(kBytes), output_ = std::vector<std::byte>(kBytes);
  link::SendEnd out_;
  link::RecvEnd in_;
  const schedule::Schedule sends_ = schedule::buildSend(0, 2, 1), receives_ = schedule::buildReceive(1, 2, 0);
  Binding sending_, receiving_;
  Lane sender_, receiver_;
};

TEST_F(Lenders, PiecesAreReadWhereTheyLie) {
  ASSERT_EQ(run(sender_), LaneState::kBlocked);
  EXPECT_EQ(in_.carried(), link::PayloadLocation::kAtSender);
  EXPECT_EQ(in_.lentAt().at, reinterpret_cast<uint64_t>(input_.data()));
  LaneState sent = LaneState::kBlocked, received = LaneState::kBlocked;
  for (int turns = 0; turns < 100 && (sent != LaneState::kDone || received != LaneState::kDone); ++turns) {
    if (received != LaneState::kDone) received = run(receiver_);
    if (sent != LaneState::kDone) sent = run(sender_);
  }
  EXPECT_EQ(sent, LaneState::kDone);
  EXPECT_EQ(output_, input_);
}

// One post is of all that may be lent; the last piece, a small one, has another.
TEST_F(Lenders, OnePostCoversAllRounds) {
  EXPECT_EQ(run(sender_), LaneState::kBlocked) << "all is posted, and nothing is read";
  EXPECT_EQ(out_.posted, 2u);
  EXPECT_EQ(in_.lent().rounds, 5u);
  EXPECT_EQ(in_.lent().bytes, kBytes);
  EXPECT_EQ(run(receiver_), LaneState::kDone);
  EXPECT_EQ(in_.received, 2u);
  EXPECT_EQ(output_, input_);
}

// Its reader goes by it as far as it says, and no farther.
TEST_F(Lenders, APostThatSaysItCoversMoreThanItLendsIsRefused) {
  run(sender_);
  link::Lent lent = in_.lent();
  lent.bytes = 2 * kSlotBytes;
  std::memcpy(in_.fifo.headers[0].inlined, &lent, sizeof lent);
  EXPECT_EQ(run(receiver_), LaneState::kFailed);
  EXPECT_NE(receiver_.failure().text.find("where this rank cannot read it"), std::string::npos);
}

// Whoever says nothing of rounds posts each.
TEST_F(Lenders, APostOfNoRoundsIsOfOne) {
  run(sender_);
  link::Lent lent = in_.lent();
  lent.rounds = 0, lent.bytes = kSlotBytes;
  std::memcpy(in_.fifo.headers[0].inlined, &lent, sizeof lent);
  EXPECT_EQ(run(receiver_), LaneState::kFailed) << "the next slot has the last piece, which is not the second";
  EXPECT_EQ(receiver_.failure().kind, LaneFailure::Kind::kBytes);
  EXPECT_EQ(in_.received, 1u);
}

TEST_F(Lenders, TheCallEndsWhenNobodyReadsItsBufferAnyMore) {
  EXPECT_EQ(run(sender_), LaneState::kBlocked) << "all is posted, and nothing is read";
  EXPECT_EQ(sender_.waitingFor(), 1);
  EXPECT_EQ(run(receiver_), LaneState::kDone);
  EXPECT_EQ(run(sender_), LaneState::kDone);
}

// Its caller may do what it likes with the buffer once the call has failed.
TEST_F(Lenders, WhatIsTakenBackIsNotTaken) {
  run(sender_);
  sender_.takeBack();
  std::ranges::fill(input_, std::byte{0x55});
  EXPECT_EQ(run(receiver_), LaneState::kFailed);
  EXPECT_EQ(receiver_.failure().kind, LaneFailure::Kind::kLink);
  EXPECT_EQ(receiver_.failure().peer, 0);
  EXPECT_NE(receiver_.failure().text.find("its call failed"), std::string::npos) << receiver_.failure().text;
}

TEST_F(Lenders, AReaderSeesThatItHasReadTooLate) {
  run(sender_);
  EXPECT_TRUE(in_.isStillLent());
  sender_.takeBack();
  EXPECT_FALSE(in_.isStillLent());
}

TEST_F(Lenders, APeerWithoutRoomInItsAddressesIsRefused) {
  run(sender_);
  const link::RemoteAddress nowhere{4096, 0};
  std::memcpy(in_.fifo.headers[0].inlined, &nowhere, sizeof nowhere);
  EXPECT_EQ(run(receiver_), LaneState::kFailed);
  EXPECT_NE(receiver_.failure().text.find("Bad address"), std::string::npos) << receiver_.failure().text;
}

// A step that has done a part of its work must not begin it again.
TEST_F(Lenders, AFailureIsFinal) {
  run(sender_);
  std::byte said[link::kInlineBytes];
  std::memcpy(said, in_.fifo.headers[0].inlined, sizeof said);
  const link::RemoteAddress nowhere{4096, 0};
  std::memcpy(in_.fifo.headers[0].inlined, &nowhere, sizeof nowhere);
  EXPECT_EQ(run(receiver_), LaneState::kFailed);
  std::memcpy(in_.fifo.headers[0].inlined, said, sizeof said);
  EXPECT_EQ(run(receiver_), LaneState::kFailed);
  EXPECT_EQ(in_.received, 0u);
}

// Slots of whoever lends though nothing can be read there.
TEST_F(Lenders, WhatCannotBeReadIsNotTakenFromItsSlot) {
  run(sender_);
  in_.memory = nullptr;
  EXPECT_EQ(run(receiver_), LaneState::kFailed);
  EXPECT_NE(receiver_.failure().text.find("where this rank cannot read it"), std::string::npos);
}

TEST_F(Lenders, WhoCannotReadIsLentNothing) {
  in_.fifo.released->readsSender.store(0);
  Lane other;
  out_.posted = 0;
  start(other, sending_, sends_, true);
  run(other);
  EXPECT_EQ(in_.carried(), link::PayloadLocation::kInSlot);
}

// --- which way ---

// Calls whose time is `slots` or `lent` by how they go: how many of 64 lend at last.
int lendsOf(uint64_t slots, uint64_t lent, bool lendsFirst = false) {
  LendingTrial trial(lendsFirst);
  int lends = 0;
  for (int call = 0; call < 224; ++call) {
    const bool now = trial.lends(1 << 20, false);
    trial.took(now ? lent : slots, 1 << 20);
    if (call >= 160) lends += now;
  }
  return lends;
}

TEST(LendingTrial, TakesWhatIsFaster) {
  EXPECT_EQ(lendsOf(100'000, 50'000), 61) << "three of 64 try the other way";
  EXPECT_EQ(lendsOf(50'000, 100'000), 3);
  EXPECT_EQ(lendsOf(100'000, 99'000), 3) << "no difference";
}

// What few calls make is not slowed down by trying.
TEST(LendingTrial, BeginsAsItIsTold) {
  for (const bool lendsFirst : {false, true}) {
    LendingTrial trial(lendsFirst);
    for (int call = 0; call < 32; ++call) {
      EXPECT_EQ(trial.lends(1 << 20, false), lendsFirst);
      trial.took(lendsFirst ? 100'000 : 50'000, 1 << 20);
    }
  }
  EXPECT_EQ(lendsOf(100'000, 50'000, true), 61);
  EXPECT_EQ(lendsOf(50'000, 100'000, true), 3) << "and goes over to what is faster";
}

// Beside others that compute it is not waited for, and believed for a while.
TEST(LendingTrial, InACrowdLendsAtOnce) {
  LendingTrial trial;
  EXPECT_FALSE(trial.lends(1 << 20, false));
  EXPECT_TRUE(trial.lends(1 << 20, false, true));
  for (int call = 2; call < 17; ++call) EXPECT_TRUE(trial.lends(1 << 20, false)) << call;
  EXPECT_FALSE(trial.lends(1 << 20, false));
  EXPECT_FALSE(trial.lends(1 << 20, true)) << "in place is apart";
}

// What was taken for a crowd were ranks with long turns.
TEST(LendingTrial, BelievesInNoCrowdWhereLendingIsMuchSlower) {
  for (const bool slower : {false, true}) {
    LendingTrial trial;
    int lends = 0;
    for (int call = 0; call < 32; ++call) {
      const bool now = trial.lends(1 << 20, false, call % 8 == 7);
      trial.took(now ? (slower ? 200'000 : 110'000) : 100'000, 1 << 20);
      lends += now;
    }
    EXPECT_EQ(lends, slower ? 1 : 25);
  }
}

// Of calls that differ by chance some that took long do not decide.
TEST(LendingTrial, OneThatWasInterruptedDecidesNothing) {
  LendingTrial trial;
  bool lends = false;
  for (int call = 0; call < 2000; ++call) {
    lends = trial.lends(1 << 20, false);
    trial.took(call % 50 == 0 ? 10'000'000 : lends ? 50'000 : 100'000, 1 << 20);
    if (call > 200 && (call - 32) % 64 >= 8) {
      EXPECT_TRUE(lends) << call;
    }
  }
}

TEST(LendingTrial, SizesAreApart) {
  LendingTrial trial;
  for (int call = 0; call < 128; ++call)
    for (const size_t bytes : {size_t{128} << 10, size_t{64} << 20}) {
      const bool lends = trial.lends(bytes, false);
      trial.took(lends == (bytes > 1 << 20) ? bytes : 2 * bytes, bytes);
    }
  for (int call = 0; call < 4; ++call) trial.lends(128 << 10, false), trial.lends(64 << 20, false);
  EXPECT_FALSE(trial.lends(128 << 10, false));
  EXPECT_TRUE(trial.lends(64 << 20, false));
}

// A long call that few make.
TEST(LendingTrial, BeginsWithSlotsWhereTheyWereFasterForShorterOnes) {
  for (const bool slotsAreFaster : {false, true}) {
    for (const bool lendsFirst : {false, true}) {
      LendingTrial trial(lendsFirst);
      for (int call = 0; call < 40; ++call)
        trial.took(trial.lends(1 << 20, false) == slotsAreFaster ? 100'000 : 50'000, 1 << 20);
      EXPECT_EQ(trial.lends(64 << 20, false), lendsFirst && !slotsAreFaster);
      EXPECT_EQ(trial.lends(128 << 10, false), lendsFirst) << "a shorter one does not";
      EXPECT_EQ(trial.lends(64 << 20, true), lendsFirst) << "in place is apart";
    }
  }
}

TEST(LendingTrial, OfEachAloneShorterOnesSayNothing) {
  LendingTrial trial(true, LendingTrial::Learns::kEachAlone);
  for (int call = 0; call < 64; ++call) {
    const bool now = trial.lends(1 << 20, true);
    trial.took(now ? 100'000 : 50'000, 1 << 20);
  }
  EXPECT_FALSE(trial.lends(1 << 20, true));
  EXPECT_TRUE(trial.lends(4 << 20, true));
}

TEST(LendingTrial, TriesLessOftenLater) {
  LendingTrial trial;
  int lends = 0;
  for (int call = 0; call < 32 + 512 + 1024; ++call) {
    const bool now = trial.lends(1 << 20, false);
    trial.took(now ? 100'000 : 50'000, 1 << 20);
    if (call >= 32 + 512) lends += now;
  }
  EXPECT_EQ(lends, 4 * 3);
}

TEST(LendingTrial, InPlaceIsApart) {
  LendingTrial trial;
  for (int call = 0; call < 128; ++call)
    for (const bool inPlace : {false, true}) {
      const bool lends = trial.lends(1 << 20, inPlace);
      trial.took(lends == inPlace ? 50'000 : 100'000, 1 << 20);
    }
  for (int call = 0; call < 4; ++call) trial.lends(1 << 20, false), trial.lends(1 << 20, true);
  EXPECT_FALSE(trial.lends(1 << 20, false));
  EXPECT_TRUE(trial.lends(1 << 20, true));
}

// What was faster once is forgotten.
TEST(LendingTrial, FollowsAChange) {
  LendingTrial trial;
  bool lends = false;
  for (int call = 0; call < 4000; ++call) {
    lends = trial.lends(1 << 20, false);
    const bool early = call < 1000;
    trial.took(lends == early ? 50'000 : 100'000, 1 << 20);
  }
  EXPECT_FALSE(lends);
}

}  // namespace
}  // namespace tutti::engine

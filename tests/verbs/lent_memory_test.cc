// A striped link whose slots lie in its user's memory: what devices register of it is never more than may be, never
// gives way while it is in use, and none is left; and what is sent from there comes once, in its order, unchanged.
#include <gtest/gtest.h>

#include <cstdio>

#include "support/sanitized.h"
#include "verbs/striped_world.h"

namespace tutti::verbs {
namespace {

// Of a world with slots of this depth: what so many of its buffers have.
size_t buffersOf(uint32_t depth, size_t count) { return count * depth * kSlotBytes; }

constexpr uint64_t kSeeds = kSanitized ? 3 : 20;

TEST(LentMemory, MoreBuffersThanMayBeRegistered) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    for (const size_t paths : {1, 2, 3}) {
      World world(seed, {.paths = paths, .slots = 2000, .lends = true, .cacheBytes = buffersOf(8, 2)});
      EXPECT_TRUE(world.run()) << "seed " << seed << ": " << world.link(0).error();
      EXPECT_GT(world.link(0).sentInPlace(), 0u);
      EXPECT_GT(world.registered(0), 2u) << "they took turns";
    }
}

// Also where one device of two refuses: then the link holds nothing, on neither.
TEST(LentMemory, DevicesThatRefuse) {
  uint64_t refused = 0, held = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    World world(seed, {.paths = 4,
                       .slots = 1000,
                       .faults = {.refusedMemory = 0.2},
                       .lends = true,
                       .cacheBytes = buffersOf(8, 4),
                       .deviceBytes = buffersOf(8, 1 + seed % 3)});
    EXPECT_TRUE(world.run()) << world.link(0).error();
    for (size_t end = 0; end < 2; ++end) refused += world.caller(end).refused(), held += world.caller(end).held();
  }
  EXPECT_GT(refused, held / 20);
  EXPECT_GT(held, refused / 20);
}

TEST(LentMemory, NothingIsHeldWhereNothingMayBe) {
  World world(1, {.slots = 1000, .lends = true, .cacheBytes = buffersOf(8, 1) - 1});
  EXPECT_TRUE(world.run());
  EXPECT_EQ(world.caller(0).held() + world.caller(1).held(), 0u);
  EXPECT_EQ(world.link(0).sentInPlace(), 0u);
}

// Paths break in the middle of messages, calls fail and take back what they lent, programs deregister too early.
TEST(LentMemory, WhatABrokenPathHeldGoesOtherWays) {
  const uint64_t slots = kSanitized ? 10'000 : 100'000;
  uint64_t moved = 0, inPlace = 0, failedCalls = 0, broken = 0, failedLinks = 0, worlds = 0;
  for (uint64_t seed = 0; moved < slots; ++seed, ++worlds) {
    const size_t paths = 3 + seed % 4;
    const uint32_t depth = 1u << seed % 5;
    World world(seed, {.paths = paths,
                       .depth = depth,
                       .slots = 400,
                       .breaks = 3e-5 * static_cast<double>(paths),
                       .faults = {.refusedWrite = 1e-4,
                                  .refusedNotes = 1e-4,
                                  .refusedLife = 0.2,
                                  .failedPoll = 1e-5,
                                  .inactivePort = 0.5,
                                  .refusedMemory = 0.05},
                       .lends = true,
                       .cacheBytes = buffersOf(depth, 3),
                       .failedCalls = 3e-4});
    if (!world.run()) ++failedLinks;
    for (size_t end = 0; end < 2; ++end) {
      const std::string error = world.link(end).error();  // for want of paths, and for nothing else
      EXPECT_TRUE(error.empty() || error.starts_with("fake_")) << error;
      inPlace += world.link(end).sentInPlace();
      failedCalls += world.caller(end).failed();
    }
    moved += world.moved();
    broken += world.link(0).broken();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  std::printf("%lu slots in %lu worlds, %lu from users' memory: %lu paths broke, %lu calls and %lu links failed\n",
              moved, worlds, inPlace, broken, failedCalls, failedLinks);
  EXPECT_GT(inPlace, moved / 50);
  EXPECT_GT(broken, worlds / 2);
  EXPECT_GT(failedCalls, worlds / 4);
  EXPECT_LT(failedLinks, worlds / 2);
}

// ---- By hand: one end of a link that sends
// ---------------------------------------------------------------------------

class TakingBack : public testing::Test {
 protected:
  static constexpr uint32_t kDepth = 4, kBytes = 5000;

  void open(size_t paths) {
    for (size_t end = 0; end < 2; ++end)
      links_[end] = std::make_unique<StripedLink>(memories_[end].fifo(end), memories_[end].fifo(1 - end),
                                                  memories_[end].data(), end == 0);
    for (size_t i = 0; i < paths; ++i) {
      FakeQueue* queues[2];
      for (size_t end = 0; end < 2; ++end) {
        auto queue = std::make_unique<FakeQueue>("fake_" + std::to_string(i), memories_[end].data(),
                                                 memories_[end].bytes(), random_, faults_, device_, nullptr);
        queues[end] = queue.get();
        links_[end]->addPath(std::move(queue), {});
      }
      paths_.emplace_back(*queues[0], *queues[1]);
    }
    ASSERT_TRUE(links_[0]->begin() && links_[1]->begin());
    std::string why;
    ASSERT_TRUE(links_[0]->hold(lent(), SIZE_MAX, why)) << why;
  }
  tuttiTransportMemory lent() const { return {buffer_.data(), buffer_.size(), 1}; }
  void post() {
    tuttiSlotHeader& header = memories_[0].fifo(0).headers[0];
    const auto address = reinterpret_cast<uint64_t>(buffer_.data());
    header.bytes = kBytes;
    header.carried = TUTTI_LENT;
    std::memcpy(header.inlined, &address, sizeof address);
    header.sequence = 1;
    progress(0);
  }
  void takeBack() {
    const tuttiFifo fifo = memories_[0].fifo(0);
    std::memcpy(fifo.slots, buffer_.data(), kBytes);
    fifo.headers[0].carried = 0;
    links_[0]->takeBack(now_);
    links_[0]->letGo(1);
    device_->cache->forget(1);
    std::ranges::fill(buffer_, std::byte{0xbd});
  }
  Progress progress(size_t end) { return links_[end]->progress(now_ += milliseconds(1)); }
  // Until the slot is there, or the sender has failed.
  bool arrives() {
    const tuttiFifo fifo = memories_[1].fifo(0);
    for (int i = 0; i < 100'000 && fifo.headers[0].sequence != 1; ++i) {
      FakePath& path = paths_[static_cast<size_t>(i) % paths_.size()];
      for (size_t end = 0; end < 2; ++end) path.leave(end), path.arrive(end), path.acknowledge(end), progress(end);
    }
    return fifo.headers[0].sequence == 1;
  }
  bool isWhole() const {
    const auto* const slot = reinterpret_cast<const std::byte*>(memories_[1].fifo(0).slots);
    return std::all_of(slot, slot + kBytes, [](std::byte b) { return b == std::byte{0x17}; });
  }

  std::mt19937_64 random_{1};
  FakeFaults faults_;
  Memory memories_[2] = {Memory(kDepth), Memory(kDepth)};
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kBytes, std::byte{0x17});
  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>("one", SIZE_MAX, random_, faults_.refusedMemory);
  std::unique_ptr<StripedLink> links_[2];
  std::vector<FakePath> paths_;
  TimePoint now_{};
};

TEST_F(TakingBack, TheSlotGoesOnFromWhereItIsNow) {
  open(2);
  post();
  takeBack();
  EXPECT_EQ(device_->count(), 0u);
  EXPECT_TRUE(arrives()) << links_[0]->error();
  EXPECT_TRUE(isWhole());
  EXPECT_EQ(links_[0]->broken(), 1u);
}

// Nothing else stops a device.
TEST_F(TakingBack, TheLastPathTakesTheLinkWithIt) {
  open(1);
  post();
  takeBack();
  EXPECT_EQ(progress(0), Progress::kFailed);
  EXPECT_EQ(links_[0]->error(), "fake_0: a call has failed whose memory was being sent");
  EXPECT_EQ(device_->count(), 0u);
  EXPECT_FALSE(paths_[0].leave(0)) << "nothing is read any more";
}

TEST_F(TakingBack, WhatHasArrivedStays) {
  open(1);
  post();
  EXPECT_TRUE(arrives());
  for (int i = 0; i < 100; ++i) paths_[0].acknowledge(0), progress(0);
  EXPECT_EQ(*memories_[0].fifo(0).released, 1u);
  takeBack();
  EXPECT_EQ(progress(0), Progress::kIdle);
  EXPECT_TRUE(isWhole());
}

// The peer has released the slot, and the device does not know yet that it has come: it may read it again.
TEST_F(TakingBack, ASlotIsFreeWhenItsDeviceIsDoneWithIt) {
  open(1);
  post();
  const tuttiFifo sent = memories_[0].fifo(0), come = memories_[1].fifo(0);
  for (int i = 0; i < 1000 && come.headers[0].sequence != 1; ++i) paths_[0].leave(0), paths_[0].arrive(0), progress(1);
  ASSERT_EQ(come.headers[0].sequence, 1u);
  *come.released = 1;
  for (int i = 0; i < 1000; ++i)
    progress(1), paths_[0].leave(1), paths_[0].arrive(1), paths_[0].acknowledge(1), progress(0);
  EXPECT_EQ(*sent.released, 0u);
  for (int i = 0; i < 1000; ++i) paths_[0].acknowledge(0), progress(0);
  EXPECT_EQ(*sent.released, 1u);
}

TEST_F(TakingBack, MemoryThatIsNotHeldIsNotSent) {
  open(1);
  links_[0]->letGo(1);
  post();
  EXPECT_EQ(progress(0), Progress::kFailed);
  EXPECT_EQ(links_[0]->error(), "slot 0 was posted in memory that is not held");
}

}  // namespace
}  // namespace tutti::verbs

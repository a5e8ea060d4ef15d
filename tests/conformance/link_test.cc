// What every transport owes: what is posted at one end appears at the other, in order, unchanged, exactly once.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "link/registry.h"
#include "settings/settings.h"
#include "support/faulty_loopback.h"
#include "support/patience.h"
#include "support/traffic_generator.h"

namespace tutti::test {
namespace {

link::TransportSettings fromEnvironment() {
  return {settings::text("TUTTI_TRANSPORT_PLUGINS"), {{"TUTTI_IB_HCA", settings::text("TUTTI_IB_HCA")}}};
}

// Each that is built in, or that the environment names; then those that need a word more than their name.
std::vector<std::string> bounded() {
  std::vector<std::string> names = link::builtinTransports("", fromEnvironment()).allowed();
  names.insert(names.end(), {"tcp_aes", "tcp_chacha"});
  return names;
}
std::vector<std::string> everyOne() {
  std::vector<std::string> names = bounded();
  names.push_back("faulty");
  return names;
}

class LinkTest : public testing::TestWithParam<std::string> {
 protected:
  link::Registry makeAll() const {
    link::Registry all = link::builtinTransports("", fromEnvironment());
    all.add(makeFaulty(network_, {.seed = 7}));
    return all;
  }
  link::Transport& chosenOf(const link::Registry& registry) const {
    return **std::ranges::find(registry.all(), transportName(), [](const auto& one) { return one->name(); });
  }
  void open(uint32_t slotBytes, uint32_t depth, uint32_t mappedDepth = 0) {
    edges_ = std::make_unique<EdgePair>(slotBytes, depth);
    for (const int side : {0, 1}) edges_->edge(side).mappedDepth = mappedDepth;
    openOver();
  }
  void openOver() {
    meetings_ = std::make_unique<MeetingPair>();
    const std::string& name = GetParam();
    if (name == "tcp_chacha") meetings_->room->seal(CipherKind::kXChaCha20Poly1305);
    if (name == "tcp_aes") meetings_->room->seal(CipherKind::kAes256Gcm);
    ends_ = connect(*edges_, *meetings_, chosenOf(low_), chosenOf(high_));
  }
  void SetUp() override {
    if (GetParam() == "tcp_aes" && !hasAes256Gcm()) GTEST_SKIP() << "this processor has no AES";
    const std::string lack = chosenOf(low_).lack(topology::describeSelf());
    if (!lack.empty()) GTEST_SKIP() << transportName() << ": " << lack;
  }
  std::string transportName() const { return GetParam().substr(0, GetParam().find('_')); }
  TrafficGenerator traffic(int side, SizeOfSlot sizes) {
    return {*ends_[side], edges_->edge(side).self, std::move(sizes)};
  }
  bool mapped() const { return ends_[0]->send.driver == nullptr; }

  std::shared_ptr<FaultyNetwork> network_ = std::make_shared<FaultyNetwork>();
  link::Registry low_ = makeAll(), high_ = makeAll();
  std::unique_ptr<EdgePair> edges_;
  std::unique_ptr<MeetingPair> meetings_;
  ConnectionPair ends_;
};

// The faulty loopback's wire has no bound, so it is left out where bounds are measured.
class BoundedLinkTest : public LinkTest {};

TEST_P(LinkTest, CarriesEverySizeAtEveryDepth) {
  constexpr uint32_t kSlotBytes = 777;  // no multiple of anything
  for (const uint32_t depth : {1u, 2u, 4u, 8u}) {
    open(kSlotBytes, depth);
    exchangeInThreads(ends_, *edges_, kSlotBytes + 1, [](int, uint64_t slot) { return static_cast<uint32_t>(slot); });
  }
}

// Each end has its own: the other one's are no business of it.
TEST_P(LinkTest, HasMoreSlotsAtTheEndsOfStreams) {
  constexpr uint32_t kSlotBytes = 4096, kDepth = 2, kStream = 16;
  edges_ = std::make_unique<EdgePair>(kSlotBytes, kDepth);
  edges_->edge(1).streamDepth = kStream;
  openOver();
  EXPECT_EQ(ends_[0]->send.fifo.depth, kDepth);
  EXPECT_EQ(ends_[1]->send.fifo.depth, transportName() == "tcp" ? kStream : kDepth);
  EXPECT_EQ(ends_[1]->recv.fifo.depth, ends_[1]->send.fifo.depth);
  exchangeInThreads(ends_, *edges_, 1000, mixedSizes(kSlotBytes, 6));
}

TEST_P(LinkTest, HasMoreSlotsWhereBothEndsMapThem) {
  constexpr uint32_t kSlotBytes = 4096, kDepth = 2, kMapped = 16;
  open(kSlotBytes, kDepth, kMapped);
  for (const auto& end : ends_) {
    EXPECT_EQ(end->send.fifo.depth, mapped() ? kMapped : kDepth);
    EXPECT_EQ(end->recv.fifo.depth, end->send.fifo.depth);
  }
  exchangeInThreads(ends_, *edges_, 1000, mixedSizes(kSlotBytes, 5));
}

// As those of two ranks are.
TEST_P(LinkTest, CarriesPayloadsOfAllLengthsInPartsOfSlots) {
  constexpr uint32_t kSlotBytes = 4096, kDepth = 2, kMapped = 8, kLines = 64;
  edges_ = std::make_unique<EdgePair>(kSlotBytes, kDepth);
  for (const int side : {0, 1}) {
    edges_->edge(side).mappedDepth = kMapped;
    edges_->edge(side).lines = kLines;
    edges_->edge(side).dividesSlots = true;
  }
  openOver();
  for (const auto& end : ends_) EXPECT_EQ(end->send.fifo.parts, mapped() ? 8 : 1);
  exchangeInThreads(ends_, *edges_, GetParam() == "faulty" ? 500 : 20'000, mixedSizes(kSlotBytes, 9));
}

TEST_P(LinkTest, CarriesBothDirectionsAtOnce) {
  constexpr uint32_t kSlotBytes = 96 << 10;
  open(kSlotBytes, 4);
  exchangeInThreads(ends_, *edges_, GetParam() == "faulty" ? 200 : 1500, mixedSizes(kSlotBytes, 3));
}

TEST_P(LinkTest, CarriesLongRunsOfSmallSlots) {
  open(4096, 8);
  exchangeInThreads(ends_, *edges_, 100'000, [](int, uint64_t) { return 8u; });
}

TEST_P(LinkTest, NamesItselfAndItsPeer) {
  open(256, 2);
  for (int side = 0; side < 2; ++side) {
    EXPECT_EQ(ends_[side]->transport, transportName());
    EXPECT_EQ(ends_[side]->send.peer, edges_->edge(side).peer);
    EXPECT_EQ(ends_[side]->recv.peer, edges_->edge(side).peer);
    EXPECT_GE(ends_[side]->memoryBytes, link::Fifo::bytesFor(256, 2));
  }
}

// A sender that meets no reader is held back after a bounded number of slots, and nothing of them is lost.
TEST_P(BoundedLinkTest, HoldsAFastSenderBack) {
  constexpr uint32_t kSlotBytes = 128 << 10, kDepth = 4;
  open(kSlotBytes, kDepth);
  const auto sizes = [](int, uint64_t) { return kSlotBytes; };
  TrafficGenerator low = traffic(0, sizes), high = traffic(1, sizes);
  uint64_t accepted = 0;
  for (int quiet = 0; quiet < 1000; ++quiet) {
    while (low.sendOne()) {
      ++accepted;
      quiet = 0;
    }
    low.drive();
    high.drive();
    ASSERT_LT(accepted, 4096u) << "nothing holds the sender back";
  }
  EXPECT_GE(accepted, kDepth);
  if (mapped()) {
    EXPECT_EQ(accepted, kDepth);
  }
  uint64_t taken = 0;
  const auto deadline = Deadline::in(longWait());
  while (taken < accepted && !deadline.passed()) {
    low.drive();
    high.drive();
    while (high.receiveOne()) ++taken;
  }
  EXPECT_EQ(taken, accepted);
  while (!ends_[0]->send.hasRoom() && !deadline.passed()) {
    low.drive();
    high.drive();
  }
  EXPECT_TRUE(low.sendOne());
  EXPECT_EQ(low.failure() + high.failure(), "");
}

TEST_P(LinkTest, SaysWhenEverythingIsDrained) {
  open(1 << 20, 2);
  const auto sizes = [](int, uint64_t) { return 1u << 20; };
  TrafficGenerator low = traffic(0, sizes), high = traffic(1, sizes);
  EXPECT_TRUE(ends_[0]->send.drained());
  ASSERT_TRUE(low.sendOne());
  EXPECT_FALSE(ends_[0]->send.drained());
  if (!mapped()) {
    EXPECT_TRUE(ends_[0]->send.driver->sending());
  }
  const auto done = [&] { return ends_[0]->send.drained() && (mapped() || !ends_[0]->send.driver->sending()); };
  const auto deadline = Deadline::in(longWait());
  bool received = false;
  while (!(received && done()) && !deadline.passed()) {
    received = received || high.receiveOne();
    low.drive();
    high.drive();
  }
  EXPECT_TRUE(received);
  EXPECT_TRUE(done());
  EXPECT_EQ(low.failure() + high.failure(), "");
}

TEST_P(LinkTest, WakesASleeper) {
  open(4096, 4);
  TrafficGenerator low = traffic(0, mixedSizes(4096, 1)), high = traffic(1, mixedSizes(4096, 1));
  link::Doorbell& bell = edges_->bell(1);
  std::atomic<bool> got{false};
  std::thread sleeper([&] {
    const auto deadline = Deadline::in(longWait());
    while (!got && !deadline.passed()) {
      bell.sleeping.store(1, std::memory_order_seq_cst);
      const uint32_t rings = bell.rings.load(std::memory_order_acquire);
      high.drive();
      if (high.receiveOne()) {
        got = true;
      } else if (mapped()) {
        const timespec limit{0, 100'000'000};
        ::syscall(SYS_futex, &bell.rings, FUTEX_WAIT, rings, &limit, nullptr, 0);
      } else if (const auto [fd, events] = ends_[1]->recv.driver->interest(); fd >= 0) {
        pollfd entry{fd, events, 0};
        ::poll(&entry, 1, 100);
      }
    }
  });
  while (bell.sleeping.load() == 0) std::this_thread::yield();
  ASSERT_TRUE(low.sendOne());
  while (!got && !mapped()) low.drive();
  sleeper.join();
  EXPECT_TRUE(got);
  EXPECT_EQ(high.failure(), "");
  if (mapped()) {
    EXPECT_GT(bell.rings.load(), 0u);
  }
}

// What was handed over before an end went can still be taken at the other, and ringing where nobody is any more is
// harmless.
TEST_P(LinkTest, SurvivesItsPeerInEitherOrder) {
  for (const int first : {0, 1}) {
    open(4096, 4);
    const auto sizes = mixedSizes(4096, 5);
    TrafficGenerator leaver = traffic(first, sizes), stayer = traffic(1 - first, sizes);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(leaver.sendOne());
    link::Driver* const driver = ends_[first]->send.driver;
    while (driver != nullptr && driver->sending()) leaver.drive();
    edges_->bell(1 - first).sleeping = 1;
    ends_[first].reset();
    int taken = 0;
    const auto deadline = Deadline::in(longWait());
    while (taken < 3 && !deadline.passed()) {
      taken += stayer.receiveOne() ? 1 : 0;
      if (taken < 3) stayer.drive();
    }
    EXPECT_EQ(taken, 3);
    EXPECT_EQ(stayer.failure(), "");
    stayer.sendOne();
    stayer.drive();
    ends_[1 - first].reset();
  }
}

TEST_P(BoundedLinkTest, NeedsNoMoreMemoryTheLongerItRuns) {
  const auto resident = [] {
    size_t total = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> total >> pages;
    return pages * 4096;
  };
  constexpr uint32_t kSlotBytes = 64 << 10;
  open(kSlotBytes, 4);
  exchangeInThreads(ends_, *edges_, 100, mixedSizes(kSlotBytes, 9));
  const size_t before = resident();
  exchangeInThreads(ends_, *edges_, 3000, mixedSizes(kSlotBytes, 11));
  EXPECT_LT(resident(), before + (8 << 20));
}

std::string nameOf(const testing::TestParamInfo<std::string>& chosen) { return chosen.param; }

INSTANTIATE_TEST_SUITE_P(All, LinkTest, testing::ValuesIn(everyOne()), nameOf);
INSTANTIATE_TEST_SUITE_P(All, BoundedLinkTest, testing::ValuesIn(bounded()), nameOf);

TEST(FaultyLoopback, MovesNothingWhileStoppedAndNamesThePeerWhenCut) {
  auto network = std::make_shared<FaultyNetwork>();
  const auto low = makeFaulty(network, {.seed = 3}), high = makeFaulty(network, {.seed = 4});
  EdgePair edges(4096, 2);
  MeetingPair meetings;
  auto ends = connect(edges, meetings, *low, *high);
  TrafficGenerator traffic(*ends[0], edges.edge(0).self, mixedSizes(4096, 2)),
      peer(*ends[1], edges.edge(1).self, mixedSizes(4096, 2));
  network->stop(true);
  ASSERT_TRUE(traffic.sendOne());
  for (int i = 0; i < 100; ++i) {
    traffic.drive();
    peer.drive();
  }
  EXPECT_FALSE(peer.receiveOne());
  network->stop(false);
  for (int i = 0; i < 1000 && !ends[1]->recv.ready(); ++i) {
    traffic.drive();
    peer.drive();
  }
  EXPECT_TRUE(peer.receiveOne());
  network->cut();
  peer.drive();
  EXPECT_EQ(peer.failure(), "the faulty link to rank 2 (lowhost) was cut by the test");
}

}  // namespace
}  // namespace tutti::test

// What a hostile peer can write into the words that kernels follow: a receiver's kernel reads, and a sender's writes,
// nothing but what that very peer has shared with it.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "emulation/emulation_fixture.h"
#include "emulation/lone_rank.h"
#include "kernels/cuda/direct.cuh"
#include "schedule/algorithm.h"

namespace tutti::test {
namespace {

using device::Direct;
using device::Fault;
using device::MappedWindow;
using link::RemoteAddress;

// --- inside of a window, whatever the numbers ---

TEST(MappedWindow, FindsWhatIsWholeInIt) {
  constexpr MappedWindow window{0x1000, 100};
  EXPECT_EQ(window.find(0, 100), 0x1000u);
  EXPECT_EQ(window.find(40, 60), 0x1000u + 40);
  EXPECT_EQ(window.find(100, 0), 0x1000u + 100);
  constexpr uint64_t kMost = ~uint64_t{0};
  for (const auto& [at, bytes] : {std::pair<uint64_t, uint64_t>{0, 101},
                                  {41, 60},
                                  {101, 0},
                                  {100, 1},
                                  {kMost, 1},
                                  {1, kMost},
                                  {kMost, kMost},
                                  {kMost - 50, 60},
                                  {50, kMost - 40}})
    EXPECT_EQ(window.find(at, bytes), 0u) << at << " " << bytes;
  EXPECT_EQ(MappedWindow{}.find(0, 0), 0u);
  EXPECT_EQ((MappedWindow{0, kMost}.find(1, 1)), 0u);
}

// --- a receiver, and a peer that posts any header ---

// Runs the kernel for a message from rank 0 to rank 1, of three. There is no rank 0: the test posts its slot. Ranks 0
// and 2 each have a window mapped, number 3 and 5.
class LoneReceiver {
 public:
  static constexpr uint32_t kDepth = 8, kSlotBytes = 1024;
  static constexpr size_t kBytes = 512, kWindowBytes = 2048;
  static constexpr uint16_t kOfPeer = 3, kOfAnother = 5;

  explicit LoneReceiver(Direct direct)
      : schedule_(schedule::buildReceive(1, 3, 0)),
        windows_(3 * device::kWindows),
        shared_(2 * kWindowBytes),
        output_(kBytes, std::byte{0x11}) {
    for (size_t i = 0; i < shared_.size(); ++i) shared_[i] = static_cast<std::byte>(i % 251);
    map(0, kOfPeer, {reinterpret_cast<uint64_t>(shared_.data()), kWindowBytes});
    map(2, kOfAnother, {reinterpret_cast<uint64_t>(shared_.data() + kWindowBytes), kWindowBytes});
    rank_.seat().windows = windows_.data();
    device::End& end = rank_.open(Protocol::kSimple, 0);
    end.direct = direct;
    header_ = end.fifo.headers;
  }

  void map(int peer, uint16_t window, const MappedWindow& is) {
    windows_[static_cast<size_t>(peer) * device::kWindows + window] = is;
  }
  void mapNothing() { rank_.seat().windows = nullptr; }

  // Takes one slot that says so. Returns what the kernel met.
  Fault take(link::PayloadLocation carried, RemoteAddress spot) {
    comm::Call call;
    call.collective = Collective::kSendRecv;
    call.root = 0;
    call.recv = output_.data();
    call.count = kBytes;
    const engine::LaneWork plain = comm::toWork(call, 0, schedule_, kSlotBytes, 0, 1);
    header_->fingerprint = plain.fingerprint;
    header_->fingerprint.operation = rank_.operation();
    header_->bytes = kBytes;
    header_->carried = carried;
    std::memcpy(header_->inlined, &spot, sizeof spot);
    header_->sequence.store(1, std::memory_order_release);  // with awaitPosted in the kernel
    const device::Report report = rank_.run(schedule_, plain, Protocol::kSimple);
    EXPECT_EQ(report.ready != 0, report.fault != Fault::kNone);
    if (report.ready != 0) {
      EXPECT_EQ(report.peer, 0);
    }
    return report.fault;
  }
  bool untouched() const { return output_ == std::vector<std::byte>(kBytes, std::byte{0x11}); }
  bool holds(size_t at) const { return std::memcmp(output_.data(), shared_.data() + at, kBytes) == 0; }
  uint64_t addressOf(size_t at) const { return reinterpret_cast<uint64_t>(shared_.data() + at); }

 private:
  const schedule::Schedule schedule_;
  LoneRank rank_{3, kSlotBytes, kDepth};
  std::vector<MappedWindow> windows_;
  std::vector<std::byte> shared_, output_;
  link::SlotHeader* header_ = nullptr;
};

using SpotsOfASender = emulation::EmulationTest;
constexpr size_t kLastPlace = LoneReceiver::kWindowBytes - LoneReceiver::kBytes;

TEST_F(SpotsOfASender, AreReadWithinItsWindow) {
  for (const size_t at : {size_t{0}, size_t{64}, kLastPlace}) {
    LoneReceiver receiver(Direct::kMapped);
    EXPECT_EQ(receiver.take(link::PayloadLocation::kAtSender, {at, LoneReceiver::kOfPeer}), Fault::kNone);
    EXPECT_TRUE(receiver.holds(at));
  }
}

void expectRefused(Direct direct, RemoteAddress spot, Fault fault) {
  LoneReceiver receiver(direct);
  EXPECT_EQ(receiver.take(link::PayloadLocation::kAtSender, spot), fault) << spot.window << " at " << spot.at;
  EXPECT_TRUE(receiver.untouched());
}

TEST_F(SpotsOfASender, AreRefusedOutsideOfIt) {
  for (const uint64_t at : {uint64_t{kLastPlace + 1}, uint64_t{LoneReceiver::kWindowBytes}, uint64_t{1} << 40,
                            ~uint64_t{0}, ~uint64_t{0} - LoneReceiver::kBytes + 1, ~uint64_t{0} - 8})
    expectRefused(Direct::kMapped, {at, LoneReceiver::kOfPeer}, Fault::kSpot);
}

TEST_F(SpotsOfASender, AreRefusedInWindowsThatItHasNot) {
  for (const uint64_t window :
       {uint64_t{0}, uint64_t{1}, uint64_t{LoneReceiver::kOfAnother}, uint64_t{device::kWindows},
        uint64_t{2 * device::kWindows + LoneReceiver::kOfAnother}, ~uint64_t{0}})
    expectRefused(Direct::kMapped, {0, window}, Fault::kNotWritable);
}

// Any address of the process: for ranks of another one, none.
TEST_F(SpotsOfASender, AreAddressesForRanksOfOneProcessOnly) {
  LoneReceiver together(Direct::kHere), apart(Direct::kMapped), numbered(Direct::kHere);
  EXPECT_EQ(together.take(link::PayloadLocation::kAtSender, {together.addressOf(100), 0}), Fault::kNone);
  EXPECT_TRUE(together.holds(100));
  EXPECT_EQ(apart.take(link::PayloadLocation::kAtSender, {apart.addressOf(100), 0}), Fault::kNotWritable);
  EXPECT_TRUE(apart.untouched());
  EXPECT_EQ(numbered.take(link::PayloadLocation::kAtSender, {0, LoneReceiver::kOfPeer}), Fault::kNotWritable);
  EXPECT_TRUE(numbered.untouched());
}

TEST_F(SpotsOfASender, AreRefusedWhereNothingIsMapped) {
  LoneReceiver receiver(Direct::kMapped), gone(Direct::kMapped);
  receiver.mapNothing();
  EXPECT_EQ(receiver.take(link::PayloadLocation::kAtSender, {0, LoneReceiver::kOfPeer}), Fault::kNotWritable);
  gone.map(0, LoneReceiver::kOfPeer, {});
  EXPECT_EQ(gone.take(link::PayloadLocation::kAtSender, {0, LoneReceiver::kOfPeer}), Fault::kNotWritable);
}

TEST_F(SpotsOfASender, AreNotInAnOutputThatIsNotOpen) {
  for (const Direct direct : {Direct::kMapped, Direct::kHere}) {
    LoneReceiver receiver(direct);
    EXPECT_EQ(receiver.take(link::PayloadLocation::kAtReceiver, {}), Fault::kNotWritable);
    EXPECT_TRUE(receiver.untouched());
  }
}

// --- a sender, and a peer that says that its output is anywhere ---

struct Choice {
  cuda::Block block;
  schedule::Step step;
  cuda::Run first{};
  cuda::Place place;
  link::Counter released;
  alignas(128) link::SlotHeader header;
  size_t outputEnd = 0;
  uint32_t good = 0;
};

__global__ void choose(Choice* choice) {
  device::End& end = choice->block.outs[0];
  choice->good =
      cuda::chooseCarriage(choice->block, choice->step, end, choice->first, choice->outputEnd, choice->place);
}

using SpotsOfAReceiver = emulation::EmulationTest;

// What a sender to rank 0 does, when `end` bytes land in an output that is said to be there.
Fault land(Direct direct, const RemoteAddress& output, size_t end) {
  std::vector<MappedWindow> windows(3 * device::kWindows);
  windows[4] = {0x10000, 1000};
  windows[2 * device::kWindows + 6] = {0x20000, 1000};
  device::Report report;
  uint32_t reporting = 0;
  const auto choice = std::make_unique<Choice>();
  device::DeviceComm& seat = choice->block.work.seat;
  seat.windows = windows.data();
  seat.report = &report;
  seat.reporting = &reporting;
  choice->block.stop = 0;
  choice->block.directSlots = 0;
  choice->block.fingerprint.operation = 7;
  choice->step.flags = schedule::kDirectWrite;
  choice->outputEnd = end;
  choice->place.peer = 0;
  choice->released.output = output;
  choice->released.outputOf = 8;
  choice->block.outs[0].fifo = {nullptr, &choice->header, &choice->released, 1024, 1};
  choice->block.outs[0].direct = direct;
  EXPECT_EQ(emulation::launch(choose, 1, 1, 0, nullptr, choice.get()), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(choice->good != 0, report.ready == 0);
  EXPECT_EQ(choice->good != 0, choice->header.carried == link::PayloadLocation::kAtReceiver);
  EXPECT_EQ(report.ready != 0 ? report.peer : 0, 0);
  return report.fault;
}

TEST_F(SpotsOfAReceiver, AreWrittenWithinItsWindow) {
  EXPECT_EQ(land(Direct::kMapped, {0, 4}, 1000), Fault::kNone);
  EXPECT_EQ(land(Direct::kMapped, {600, 4}, 400), Fault::kNone);
  EXPECT_EQ(land(Direct::kHere, {0xabcdef, 0}, 1000), Fault::kNone);
  EXPECT_EQ(land(Direct::kMapped, {600, 4}, 401), Fault::kSpot);
  EXPECT_EQ(land(Direct::kMapped, {~uint64_t{0}, 4}, 1), Fault::kSpot);
  EXPECT_EQ(land(Direct::kMapped, {~uint64_t{0} - 99, 4}, 100), Fault::kSpot);
}

TEST_F(SpotsOfAReceiver, AreRefusedInWindowsThatItHasNot) {
  for (const uint64_t window :
       {uint64_t{0}, uint64_t{6}, uint64_t{device::kWindows}, uint64_t{2 * device::kWindows + 6}})
    EXPECT_EQ(land(Direct::kMapped, {0, window}, 100), Fault::kNotWritable) << window;
  EXPECT_EQ(land(Direct::kHere, {0, 4}, 100), Fault::kNotWritable);
}

}  // namespace
}  // namespace tutti::test

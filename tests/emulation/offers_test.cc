// A peer that offers buffers, and one that says what is no offer: what it may name is mapped whole and no longer than
// it is offered, and after the first wrong word nothing of it is taken any more.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "comm/device_windows.h"
#include "comm/mail_key.h"
#include "emulation/control.h"
#include "emulation/device_fixture.h"
#include "support/patience.h"
#include "topology/card.h"

namespace tutti::comm {
namespace {

using cuda::MappedWindow;
using emulation::Sharing;

// As DeviceWindows::Say.
constexpr uint8_t kOffer = 0, kTaken = 1, kWithdrawn = 3, kGone = 4, kNothing = 0xff;

// Two ranks on threads of this process, which take each other for processes. Rank 0 has windows; what rank 1 would say
// of its own, the test says.
class Offers : public engine::test::OnGpu {
 protected:
  static constexpr size_t kBytes = 4096;
  void SetUp() override {
    OnGpu::SetUp();
    emulation::setSharing(Sharing::kFabric);
    const control::UniqueId id = control::openRoot({}, soon());
    std::thread other([&] { begin(1, id); });
    begin(0, id);
    other.join();
    ASSERT_TRUE(ends_[0].plane && ends_[1].plane);
    windows_.emplace(*ends_[0].plane, *device_, *ends_[0].peers, cards_);
    memory_ = device_->allocateForUsers(kBytes);
  }
  void TearDown() override {
    windows_.reset();
    for (End& end : ends_) end = {};
    emulation::setSharing(Sharing::kVirtual);
  }

  Bytes offerOf(uint16_t window) {
    const auto offer = device_->offerBuffer(memory_->data, kBytes);
    EXPECT_FALSE(offer.descriptor);
    return Writer().value(kOffer).value(window).value(false).block(offer.record).take();
  }
  static Bytes saying(uint8_t what, uint16_t window) { return Writer().value(what).value(window).take(); }
  // What rank 0 answers; kNothing, when it says nothing to the question that only an end that listens answers, either.
  uint8_t answerTo(const Bytes& message) {
    ends_[1].plane->post(0, kMailbox, message);
    ends_[1].plane->post(0, kMark, {});
    const auto deadline = soon();
    while (!ends_[0].plane->poll(1, kMark) && !deadline.passed()) std::this_thread::yield();
    windows_->look(true);
    ends_[0].plane->post(1, kMark, {});
    while (!ends_[1].plane->poll(0, kMark) && !deadline.passed()) std::this_thread::yield();
    EXPECT_FALSE(deadline.passed());
    const auto answer = ends_[1].plane->poll(0, kMailbox);
    return answer ? Reader(*answer).value<uint8_t>() : kNothing;
  }
  MappedWindow told(int rank, uint16_t window) {
    MappedWindow there;
    device_->copy(&there, windows_->table() + static_cast<size_t>(rank) * cuda::kWindows + window, sizeof there);
    return there;
  }
  void expectDeaf() { EXPECT_EQ(answerTo(offerOf(7)), kNothing); }

 private:
  static constexpr uint64_t kMailbox = MailKey::windows().mailbox(), kMark = ~uint64_t{0};
  struct End {
    std::unique_ptr<control::Plane> plane;
    std::unique_ptr<DevicePeers> peers;
  };
  static Deadline soon() { return Deadline::in(tutti::test::longWait()); }

  void begin(int rank, const control::UniqueId& id) try {
    End& end = ends_[static_cast<size_t>(rank)];
    control::JoinRequest request;
    request.id = id;
    request.rank = rank;
    request.size = 2;
    request.deadline = soon();
    end.plane = control::Plane::join(request);
    DeviceShape shape;
    shape.size = 2;
    shape.slotBytes.fill(4096);
    end.peers = std::make_unique<DevicePeers>(*end.plane, *device_, cards_, shape, soon());
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }

  static std::vector<topology::Card> twoProcesses() {
    std::vector<topology::Card> cards(2, topology::describeSelf());
    for (size_t rank = 0; rank < 2; ++rank) {
      cards[rank].device = 0;
      cards[rank].processToken += rank;
    }
    return cards;
  }

  const std::vector<topology::Card> cards_ = twoProcesses();
  std::array<End, 2> ends_;
  std::optional<DeviceWindows> windows_;
  std::unique_ptr<engine::DeviceMemory> memory_;
};

TEST_F(Offers, AreMappedAsLongAsTheyStand) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(answerTo(offerOf(3)), kTaken);
    EXPECT_NE(told(1, 3).base, 0u);
    EXPECT_EQ(told(1, 3).bytes, kBytes);
    EXPECT_EQ(answerTo(saying(kWithdrawn, 3)), kGone);
    EXPECT_EQ(told(1, 3).base, 0u);
  }
  for (const int rank : {0, 1})
    for (uint16_t window = 0; window < cuda::kWindows; ++window) EXPECT_EQ(told(rank, window).base, 0u);
}

// Kernels of this rank may be reading what has the number now.
TEST_F(Offers, AreNotReplaced) {
  EXPECT_EQ(answerTo(offerOf(3)), kTaken);
  const MappedWindow before = told(1, 3);
  EXPECT_EQ(answerTo(offerOf(3)), kNothing);
  EXPECT_EQ(told(1, 3).base, before.base);
  expectDeaf();
}

TEST_F(Offers, AreWithdrawnOnce) {
  EXPECT_EQ(answerTo(saying(kWithdrawn, 5)), kNothing);
  expectDeaf();
}

TEST_F(Offers, HaveNumbersOfWindows) {
  EXPECT_EQ(answerTo(offerOf(cuda::kWindows)), kNothing);
  expectDeaf();
}

TEST_F(Offers, AreWordsThatThereAre) {
  EXPECT_EQ(answerTo(saying(77, 5)), kNothing);
  expectDeaf();
}

TEST_F(Offers, SayYesOrNo) {
  Bytes offer = offerOf(3);
  offer[3] = std::byte{2};
  EXPECT_EQ(answerTo(offer), kNothing);
  expectDeaf();
}

TEST_F(Offers, AreAnsweredWhenTheyWereMade) {
  EXPECT_EQ(answerTo(saying(kTaken, 5)), kNothing);
  expectDeaf();
}

}  // namespace
}  // namespace tutti::comm

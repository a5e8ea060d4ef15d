// A peer that offers buffers, and one that says what is no offer: what it may name is mapped whole and no longer than
// it is offered, and after the first wrong word nothing of it is taken any more, and the job ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "comm/communicator.h"
#include "emulation/control.h"
#include "emulation/device_fixture.h"
#include "gpu/remote_buffers.h"
#include "join/open_root.h"
#include "support/join_plane.h"
#include "support/patience.h"
#include "team/mail_key.h"
#include "topology/peer_info.h"

namespace tutti::gpu {
namespace {

using device::MappedWindow;
using emulation::Sharing;

// As RemoteBuffers::Say.
constexpr uint8_t kOffer = 0, kTaken = 1, kWithdrawn = 3, kGone = 4, kNothing = 0xff;
constexpr uint64_t kMailbox = comm::MailKey::windows().mailbox();

Deadline soon() { return Deadline::in(tutti::test::longWait()); }
Bytes saying(uint8_t what, uint16_t window) { return Writer().value(what).value(window).take(); }

// Two ranks on threads of this process, which take each other for processes. Rank 0 has windows; what rank 1 would say
// of its own, the test says.
class Offers : public device::test::OnGpu {
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
    windows_.emplace(*ends_[0].plane, *device_, *ends_[0].peers, infos_);
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
  // What rank 0 answers; kNothing, when it says nothing to the question that only an end that listens answers, either.
  uint8_t answerTo(const Bytes& message) {
    arrive(message);
    if (const auto lie = windows_->look(true)) {
      EXPECT_FALSE(lied_) << "it is told once";
      lied_ = lie->peer;
    }
    ends_[0].plane->post(1, kMark, {});
    awaitMark(1);
    const auto answer = ends_[1].plane->poll(0, kMailbox);
    return answer ? Reader(*answer).value<uint8_t>() : kNothing;
  }
  // Rank 1 says it, and it has come: rank 0 hears it when it looks next.
  void arrive(const Bytes& message) {
    ends_[1].plane->post(0, kMailbox, message);
    ends_[1].plane->post(0, kMark, {});
    awaitMark(0);
  }
  MappedWindow told(int rank, uint16_t window) {
    MappedWindow there;
    device_->copy(&there, windows_->table() + static_cast<size_t>(rank) * device::kWindows + window, sizeof there);
    return there;
  }
  void addOwn(const comm::Range& buffer) { windows_->add(nullptr, buffer); }
  std::optional<RemoteBuffers::Lie> look() { return windows_->look(true); }
  control::Plane& plane(size_t rank) { return *ends_[rank].plane; }
  const DevicePeers& peers() const { return *ends_[0].peers; }
  const std::vector<topology::PeerInfo>& infos() const { return infos_; }
  void expectTrusted() const { EXPECT_FALSE(lied_); }
  void expectDeaf() {
    EXPECT_EQ(lied_, 1);
    EXPECT_EQ(answerTo(offerOf(7)), kNothing);
  }

 private:
  static constexpr uint64_t kMark = ~uint64_t{0};
  struct End {
    std::shared_ptr<control::Plane> plane;
    std::unique_ptr<DevicePeers> peers;
  };
  void awaitMark(int rank) {
    const auto deadline = soon();
    control::Plane& here = *ends_[static_cast<size_t>(rank)].plane;
    while (!here.poll(1 - rank, kMark) && !deadline.passed()) std::this_thread::yield();
    EXPECT_FALSE(deadline.passed());
  }
  void begin(int rank, const control::UniqueId& id) try {
    End& end = ends_[static_cast<size_t>(rank)];
    control::JoinRequest request;
    request.id = id;
    request.rank = rank;
    request.size = 2;
    request.deadline = soon();
    end.plane = joinPlane(request);
    GpuLayout shape;
    shape.size = 2;
    shape.slotBytes.fill(4096);
    end.peers = std::make_unique<DevicePeers>(*end.plane, *device_, infos_, shape, soon());
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }

  static std::vector<topology::PeerInfo> twoProcesses() {
    std::vector<topology::PeerInfo> infos(2, topology::describeSelf());
    for (size_t rank = 0; rank < 2; ++rank) {
      infos[rank].device = 0;
      infos[rank].processToken += rank;
    }
    return infos;
  }

  const std::vector<topology::PeerInfo> infos_ = twoProcesses();
  std::array<End, 2> ends_;
  std::optional<RemoteBuffers> windows_;
  std::unique_ptr<device::DeviceMemory> memory_;
  std::optional<int> lied_;
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
    for (uint16_t window = 0; window < device::kWindows; ++window) EXPECT_EQ(told(rank, window).base, 0u);
  expectTrusted();
}

// What can not be mapped here is refused, which harms nobody.
TEST_F(Offers, AreRefusedWhereTheyCanNotBeMapped) {
  constexpr uint8_t kRefused = 2;
  const Bytes foreign = Writer().value(kOffer).value<uint16_t>(3).value(false).block(Bytes(7)).take();
  EXPECT_EQ(answerTo(foreign), kRefused);
  EXPECT_EQ(answerTo(offerOf(4)), kTaken);
  expectTrusted();
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
  EXPECT_EQ(answerTo(offerOf(device::kWindows)), kNothing);
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

// Its descriptor would be closed, and still be passed.
TEST_F(Offers, AreNotAnsweredBeforeTheirDescriptorHasBeenPassed) {
  emulation::setSharing(Sharing::kVirtual);  // whose buffers go by descriptors, over streams
  const auto memory = device_->allocateForUsers(kBytes);
  addOwn({memory->data, kBytes});
  arrive(saying(kTaken, 1));  // before rank 0 has looked for the stream that its descriptor goes over
  const auto lie = look();
  ASSERT_TRUE(lie);
  EXPECT_EQ(lie->peer, 1);
  EXPECT_NE(lie->what.find("the buffer 1, whose descriptor it has not been given"), std::string::npos) << lie->what;
}

// Which maps all slots of this rank's, those of its own process too: so no address in any of them is followed.
TEST_F(Offers, AreForRanksOfOtherProcesses) {
  EXPECT_EQ(peers().direct(1), device::Direct::kMapped);
  EXPECT_EQ(peers().direct(0), device::Direct::kNever);
}

// --- offers that fail half-way ---

// A rank's plane, which for a while can not call anybody.
class Balky : public control::Plane {
 public:
  explicit Balky(control::Plane& plane) : plane_(plane) {}
  bool balks = false;
  void requestStream(int peer, uint64_t key, control::StreamKind kind) override {
    if (balks) throw Error(ErrorCode::kSystem, "not now");
    plane_.requestStream(peer, key, kind);
  }

  bool awaitJoined(Deadline until) override { return plane_.awaitJoined(until); }
  void leave() noexcept override { plane_.leave(); }
  uint64_t id() const noexcept override { return plane_.id(); }
  int rank() const noexcept override { return plane_.rank(); }
  int size() const noexcept override { return plane_.size(); }
  std::span<const std::byte> info(int rank) const override { return plane_.info(rank); }
  bool isHere(int rank) const override { return plane_.isHere(rank); }
  std::vector<Bytes> allGather(std::span<const std::byte> mine, Deadline until) override {
    return plane_.allGather(mine, until);
  }
  void post(int to, uint64_t key, std::span<const std::byte> message) override { plane_.post(to, key, message); }
  std::optional<Bytes> poll(int from, uint64_t key) override { return plane_.poll(from, key); }
  std::optional<SecureSocket> pollStream(int peer, uint64_t key) override { return plane_.pollStream(peer, key); }
  void whenNews(std::function<void()> news) override { plane_.whenNews(std::move(news)); }
  void ask(int rank, std::span<const std::byte> question) override { plane_.ask(rank, question); }
  std::optional<control::Answer> lastAnswer(int rank) const override { return plane_.lastAnswer(rank); }
  std::vector<int> wayTo(int rank) const override { return plane_.wayTo(rank); }
  const std::atomic<bool>& failed() const noexcept override { return plane_.failed(); }
  std::optional<control::Failure> failure() const override { return plane_.failure(); }
  void fail(const control::Failure& failure) noexcept override { plane_.fail(failure); }
  std::shared_ptr<control::Plane> shrink(const control::JoinRequest& like, std::span<const int> leftOut,
                                         const std::function<bool()>& cancelled) override {
    return plane_.shrink(like, leftOut, cancelled);
  }
  control::ChildRoot openChildRoot(const Network& network, Deadline until, std::span<const int> members) override {
    return plane_.openChildRoot(network, until, members);
  }
  control::UniqueId childId(std::span<const std::byte> told, int leader, size_t place) const override {
    return plane_.childId(told, leader, place);
  }
  Bytes sealId(const control::UniqueId& id) const override { return plane_.sealId(id); }
  control::UniqueId openId(std::span<const std::byte> told, int from) const override {
    return plane_.openId(told, from);
  }

 private:
  control::Plane& plane_;
};

// Whoever has been told of a buffer by a number must not be told of another one by the same.
TEST_F(Offers, KeepTheirNumbersAlsoWhenTheyFailHalfWay) {
  emulation::setSharing(Sharing::kVirtual);  // whose buffers go by descriptors, over streams
  const auto memory = device_->allocateForUsers(kBytes);
  const comm::Range buffer{memory->data, kBytes};
  Balky balky(plane(0));
  RemoteBuffers windows(balky, *device_, peers(), infos());
  std::vector<uint16_t> numbers;
  for (const bool balks : {true, false, true, false}) {
    balky.balks = balks;
    windows.add(nullptr, buffer);
    std::optional<Bytes> offer;
    for (const auto deadline = soon(); !offer && !deadline.passed();) offer = plane(1).poll(0, kMailbox);
    ASSERT_TRUE(offer);
    Reader in(*offer);
    ASSERT_EQ(in.value<uint8_t>(), kOffer);
    const auto number = in.value<uint16_t>();
    EXPECT_EQ(std::ranges::count(numbers, number), 0) << number;
    numbers.push_back(number);
  }
}

// --- a whole job ---

// Two ranks as above, each with its communicator and a GPU; the test speaks for rank 1 beside it.
class AFalseOffer : public device::test::OnGpu {
 protected:
  void SetUp() override {
    emulation::setDeviceCount(2);
    OnGpu::SetUp();
    emulation::setSharing(Sharing::kFabric);
    const control::UniqueId id = control::openRoot({}, soon());
    std::thread other([&] { begin(1, id); });
    begin(0, id);
    other.join();
    ASSERT_TRUE(comms_[0] && comms_[1]);
  }
  void TearDown() override {
    for (auto& comm : comms_) comm.reset();
    emulation::setSharing(Sharing::kVirtual);
    emulation::setDeviceCount(1);
  }
  void say(const Bytes& message) { planes_[1]->post(0, kMailbox, message); }
  std::string failureOf(size_t rank) {
    for (const auto deadline = soon(); !comms_[rank]->team().broken() && !deadline.passed();) std::this_thread::yield();
    return comms_[rank]->team().broken() ? comms_[rank]->team().failure("a test").what() : "";
  }

 private:
  void begin(size_t rank, const control::UniqueId& id) try {
    comm::Config config = comm::Config::fromEnvironment();
    config.device = static_cast<int>(rank);
    config.deviceSlotBytes = 1 << 20;
    const comm::Self self = comm::Self::find(config);
    topology::PeerInfo info = topology::decodePeerInfo(self.info);
    info.processToken += rank;
    control::JoinRequest request;
    request.id = id;
    request.rank = static_cast<int>(rank);
    request.size = 2;
    request.info = topology::encode(info);
    request.deadline = soon();
    auto plane = joinPlane(request);
    planes_[rank] = plane.get();
    comms_[rank] = std::make_shared<comm::Communicator>(std::move(plane), std::make_shared<comm::Recorder>(), config);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }

  std::array<control::Plane*, 2> planes_{};
  std::array<std::shared_ptr<comm::Communicator>, 2> comms_;
};

TEST_F(AFalseOffer, EndsTheJobAndIsNamedByAll) {
  say(saying(kTaken, 5));
  const std::string heard = failureOf(0), told = failureOf(1);
  for (const char* word : {"rank 1 (", "said of its registered buffers to rank 0 (", "the buffer 5"}) {
    EXPECT_NE(heard.find(word), std::string::npos) << heard;
    EXPECT_NE(told.find(word), std::string::npos) << told;
  }
  EXPECT_EQ(told.find("rank 0 ("), 0u) << told;
}

}  // namespace
}  // namespace tutti::gpu

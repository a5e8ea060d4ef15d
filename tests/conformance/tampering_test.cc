// A man in the middle of a sealed TCP link: whatever he does, what arrives is what was sent, up to an error that names
// the link.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>

#include "base/deadline.h"
#include "support/patience.h"
#include "support/traffic_generator.h"
#include "transports/tcp/framing.h"
#include "transports/tcp/tcp.h"

namespace tutti::test {
namespace {

constexpr uint32_t kSealedSlotBytes = 3000;
constexpr size_t kHead = transports::SealedFraming::kHeadBytes, kTag = Cipher::kTagBytes;

// Slots of both shapes: 20 bytes travel in the head record, 500 in a record of their own.
uint32_t sizeOf(int, uint64_t slot) { return slot % 2 == 0 ? 20 : 500; }
constexpr size_t kFirstBytes = kHead, kSecondBytes = kHead + 500 + kTag, kPairBytes = kFirstBytes + kSecondBytes;

struct Outcome {
  uint64_t taken = 0;
  std::string failure;
};

// 20 slots from rank 2 to rank 5, with `tamper` on the way.
Outcome send20(CipherKind kind, Tamper tamper) {
  MeetingPair meetings;
  meetings.room->seal(kind);
  meetings.room->intercept(tamper);
  EdgePair edges(kSealedSlotBytes, 4);
  const auto tcp = transports::makeTcp();
  const auto ends = connect(edges, meetings, *tcp, *tcp);
  TrafficGenerator sender(*ends[0], 2, sizeOf), receiver(*ends[1], 5, sizeOf);
  Outcome outcome;
  uint64_t sent = 0;
  const auto deadline = Deadline::in(longWait());
  while (outcome.taken < 20 && receiver.failure().empty() && !deadline.passed()) {
    while (sent < 20 && sender.sendOne()) ++sent;
    sender.drive();
    receiver.drive();
    while (receiver.receiveOne()) ++outcome.taken;
    std::this_thread::yield();
  }
  outcome.failure = receiver.failure();
  return outcome;
}

void expectNamedFailure(const Outcome& outcome, uint64_t whole, const std::string& what) {
  EXPECT_EQ(outcome.taken, whole);
  EXPECT_NE(outcome.failure.find("the TCP link to rank 2 (lowhost, 127.0.0.1:"), std::string::npos) << outcome.failure;
  EXPECT_NE(outcome.failure.find(what), std::string::npos) << outcome.failure;
}
const std::string kForged = "carried a record that fails its integrity check";

class Tampered : public testing::TestWithParam<CipherKind> {
 protected:
  void SetUp() override {
    if (GetParam() == CipherKind::kAes256Gcm && !hasAes256Gcm()) GTEST_SKIP() << "this processor has no AES";
  }
};

TEST_P(Tampered, PassesWhatNobodyTouched) {
  const Outcome outcome = send20(GetParam(), {});
  EXPECT_EQ(outcome.taken, 20u);
  EXPECT_EQ(outcome.failure, "");
}

// Every byte of a head, a payload and their tags; the slots before are delivered, that one and later ones are not.
TEST_P(Tampered, NoticesOneBitAnywhere) {
  for (size_t at = kPairBytes; at < 2 * kPairBytes; at += at < kPairBytes + 2 * kHead || at % 16 == 0 ? 1 : 5) {
    const Outcome outcome = send20(GetParam(), {Tampering::kFlip, at, 1, static_cast<uint8_t>(at % 8)});
    expectNamedFailure(outcome, at < kPairBytes + kFirstBytes ? 2 : 3, kForged);
    if (HasFailure()) FAIL() << "bit " << at % 8 << " of byte " << at;
  }
}

TEST_P(Tampered, NoticesRepeatedDroppedAndSwappedRecords) {
  for (const Tampering what : {Tampering::kRepeat, Tampering::kDrop, Tampering::kSwap}) {
    SCOPED_TRACE(static_cast<int>(what));
    const uint64_t whole = what == Tampering::kRepeat ? 4 : 2;
    expectNamedFailure(send20(GetParam(), {what, kPairBytes, kPairBytes}), whole, kForged);
    expectNamedFailure(send20(GetParam(), {what, kPairBytes, kHead}), what == Tampering::kRepeat ? 3 : 2, kForged);
  }
  // Not at the bounds of records, and less than one.
  expectNamedFailure(send20(GetParam(), {Tampering::kRepeat, 11, 7}), 0, kForged);
  expectNamedFailure(send20(GetParam(), {Tampering::kDrop, kPairBytes + 200, 3}), 3, kForged);
}

TEST_P(Tampered, NoticesTheEndOfTheStreamWhereverItComes) {
  expectNamedFailure(send20(GetParam(), {Tampering::kTruncate, 2 * kPairBytes}), 4, "was closed by the peer");
  for (const size_t at : {2 * kPairBytes + 1, 2 * kPairBytes + kHead - 1, 2 * kPairBytes + kHead + kHead + 3,
                          3 * kPairBytes - kTag, 3 * kPairBytes - 1}) {
    const Outcome outcome = send20(GetParam(), {Tampering::kTruncate, at});
    expectNamedFailure(outcome, at < 2 * kPairBytes + kHead ? 4 : 5, "ended in the middle of a slot");
  }
}

// One end with keys and one without: a mistake, not an attack, and yet never data.
TEST(TamperedMistake, SealedAndClearEndsDoNotUnderstandEachOther) {
  EdgePair edges(kSealedSlotBytes, 4);
  MeetingPair sealed;
  sealed.room->seal(CipherKind::kXChaCha20Poly1305);
  const auto tcp = transports::makeTcp();
  const auto setup = tcp->open(edges.edge(0), *sealed.ends[0]);
  sealed.ends[1]->requestStream(link::StreamKind::kTcp);
  const UniqueFd other = std::move(sealed.ends[1]->pollStream()->fd);
  const auto end = setup->advance();
  ASSERT_TRUE(end);
  const transports::DataFrame frame{.bytes = 100, .sequence = 1, .fingerprint = {}};
  std::vector<std::byte> bytes(sizeof frame + 100);
  std::memcpy(bytes.data(), &frame, sizeof frame);
  ASSERT_EQ(::send(other.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  link::Progress last = link::Progress::kIdle;
  for (int i = 0; i < 20'000 && last != link::Progress::kFailed; ++i) last = end->recv.driver->progress();
  EXPECT_EQ(last, link::Progress::kFailed);
  EXPECT_FALSE(end->recv.ready());
}

std::string kindName(const testing::TestParamInfo<CipherKind>& chosen) {
  return chosen.param == CipherKind::kAes256Gcm ? "aes" : "chacha";
}
INSTANTIATE_TEST_SUITE_P(Both, Tampered, testing::Values(CipherKind::kAes256Gcm, CipherKind::kXChaCha20Poly1305),
                         kindName);

}  // namespace
}  // namespace tutti::test

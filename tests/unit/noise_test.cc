// The Noise handshakes against the community's known answers, and what does not open.
#include "net/noise.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "noise_vectors.h"

namespace tutti::noise::test {
namespace {

using Bytes = std::vector<std::byte>;
using T = Token;

// Those of the vectors that tutti does not use: patterns are data, and the more of them come out right the better.
constexpr Pattern kOthers[] = {
    {"Noise_NN_25519_ChaChaPoly_BLAKE2b", false, false, {{{T::kE}, {T::kE, T::kEe}, {}}}},
    {"Noise_KK_25519_ChaChaPoly_BLAKE2b", true, true, {{{T::kE, T::kEs, T::kSs}, {T::kE, T::kEe, T::kSe}, {}}}},
    {"Noise_IK_25519_ChaChaPoly_BLAKE2b", false, true, {{{T::kE, T::kEs, T::kS, T::kSs}, {T::kE, T::kEe, T::kSe}, {}}}},
    {"Noise_XX_25519_ChaChaPoly_BLAKE2b", false, false, {{{T::kE}, {T::kE, T::kEe, T::kS, T::kEs}, {T::kS, T::kSe}}}},
    {"Noise_KKpsk0_25519_ChaChaPoly_BLAKE2b",
     true,
     true,
     {{{T::kPsk, T::kE, T::kEs, T::kSs}, {T::kE, T::kEe, T::kSe}, {}}}},
    {"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2b",
     false,
     true,
     {{{T::kE, T::kEs, T::kS, T::kSs}, {T::kE, T::kEe, T::kSe, T::kPsk}, {}}}},
    {"Noise_XXpsk3_25519_ChaChaPoly_BLAKE2b",
     false,
     false,
     {{{T::kE}, {T::kE, T::kEe, T::kS, T::kEs}, {T::kS, T::kSe, T::kPsk}}}}};

const Pattern* patternOf(std::string_view name) {
  for (const Pattern* one : {&kNNpsk0, &kIKpsk1, &kK})
    if (name == one->name) return one;
  for (const Pattern& one : kOthers)
    if (name == one.name) return &one;
  return nullptr;
}

Bytes fromHex(std::string_view hex) {
  Bytes bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

Key keyFrom(std::string_view hex) {
  Key key{};
  const Bytes bytes = fromHex(hex);
  std::copy(bytes.begin(), bytes.end(), key.begin());
  return key;
}

KeyPair pairFrom(std::string_view hex) { return hex.empty() ? KeyPair{} : keyPairOf(keyFrom(hex)); }

struct Sides {
  std::unique_ptr<Session> initiator, responder;
};

Sides sidesOf(const Vector& vector, const Pattern& pattern) {
  const KeyPair mine = pairFrom(vector.initStatic), theirs = pairFrom(vector.respStatic);
  const Bytes prologue = fromHex(vector.prologue);
  const Key psk = keyFrom(vector.psk);
  Sides sides{
      std::make_unique<Session>(pattern, true, prologue, psk, mine, pattern.responderKnown ? theirs.open : Key{}),
      std::make_unique<Session>(pattern, false, prologue, psk, theirs, pattern.initiatorKnown ? mine.open : Key{})};
  sides.initiator->setEphemeral(pairFrom(vector.initEphemeral));
  sides.responder->setEphemeral(pairFrom(vector.respEphemeral));
  return sides;
}

size_t messagesIn(const Pattern& pattern) {
  size_t count = 0;
  for (const auto& message : pattern.messages) count += message[0] != T::kEnd;
  return count;
}

class KnownAnswer : public testing::TestWithParam<Vector> {};

TEST_P(KnownAnswer, ComesOut) {
  const Vector& vector = GetParam();
  const Pattern* pattern = patternOf(vector.name);
  ASSERT_NE(pattern, nullptr) << vector.name;
  const Sides sides = sidesOf(vector, *pattern);
  const size_t shaking = messagesIn(*pattern);
  std::array<uint64_t, 2> numbers{};
  for (size_t i = 0; i < vector.messages.size(); ++i) {
    const Bytes payload = fromHex(vector.messages[i].payload), expected = fromHex(vector.messages[i].ciphertext);
    const bool up = shaking == 1 || i % 2 == 0;  // where there is one message, only the initiator ever speaks
    Session& from = up ? *sides.initiator : *sides.responder;
    Session& to = up ? *sides.responder : *sides.initiator;
    Bytes message(expected.size()), back(payload.size());
    if (i < shaking) {
      ASSERT_EQ(from.overhead() + payload.size(), expected.size());
      ASSERT_TRUE(from.write(payload, message.data()));
      ASSERT_EQ(to.overhead() + payload.size(), expected.size());
      ASSERT_TRUE(to.read(message, back.data()));
    } else {
      const uint64_t number = numbers[up ? 0 : 1]++;
      const Split mine = from.split(), theirs = to.split();
      seal(up ? mine.toResponder : mine.toInitiator, number, {}, payload, message.data());
      ASSERT_TRUE(open(up ? theirs.toResponder : theirs.toInitiator, number, {}, message, back.data()));
    }
    EXPECT_EQ(message, expected) << "message " << i;
    EXPECT_EQ(back, payload) << "message " << i;
  }
  const Bytes hash = fromHex(vector.hash);
  EXPECT_TRUE(std::equal(hash.begin(), hash.end(), sides.initiator->hash().begin()));
  EXPECT_EQ(sides.initiator->hash(), sides.responder->hash());
}

std::string patternName(const testing::TestParamInfo<Vector>& chosen) {
  const std::string name(chosen.param.name);
  return name.substr(6, name.find('_', 6) - 6);
}
INSTANTIATE_TEST_SUITE_P(Noise, KnownAnswer, testing::ValuesIn(kVectors), patternName);

// Our own pattern has no known answers; the three that are used have to refuse what was touched.
class NoiseSession : public testing::TestWithParam<const Pattern*> {
 protected:
  std::unique_ptr<Session> make(bool initiator, const Key& psk = {}) const {
    return std::make_unique<Session>(*GetParam(), initiator, prologue_, psk, initiator ? mine_ : theirs_,
                                     initiator && GetParam()->responderKnown ? theirs_.open : Key{});
  }
  Bytes prologue_ = Bytes(24, std::byte{3}), payload_ = Bytes(1, std::byte{5});
  KeyPair mine_ = drawKeyPair(), theirs_ = drawKeyPair();
};

TEST_P(NoiseSession, AgreesOnFreshKeys) {
  std::vector<Split> splits;
  for (int i = 0; i < 2; ++i) {
    const auto initiator = make(true), responder = make(false);
    for (Session* from : {initiator.get(), responder.get()}) {
      Session& to = from == initiator.get() ? *responder : *initiator;
      Bytes message(from->overhead() + payload_.size()), back(1);
      ASSERT_TRUE(from->write(payload_, message.data()));
      ASSERT_TRUE(to.read(message, back.data()));
      EXPECT_EQ(back, payload_);
    }
    const Split ours = initiator->split(), other = responder->split();
    EXPECT_EQ(ours.toResponder, other.toResponder);
    EXPECT_EQ(ours.toInitiator, other.toInitiator);
    EXPECT_NE(ours.toInitiator, ours.toResponder);
    splits.push_back(ours);
  }
  EXPECT_NE(splits[0].toResponder, splits[1].toResponder);
}

TEST_P(NoiseSession, RefusesAChangeOfAnyByteAndAnotherSecret) {
  const auto initiator = make(true);
  Bytes message(initiator->overhead() + payload_.size()), back(1);
  ASSERT_TRUE(initiator->write(payload_, message.data()));
  for (size_t at = 0; at < message.size(); ++at) {
    Bytes bent = message;
    bent[at] ^= std::byte(1u << at % 7);
    EXPECT_FALSE(make(false)->read(bent, back.data())) << at;
  }
  Key other{};
  other[31] = std::byte{1};
  EXPECT_FALSE(make(false, other)->read(message, back.data()));
  EXPECT_FALSE(make(false)->read(std::span(message).first(message.size() - 1), back.data()));
  EXPECT_TRUE(make(false)->read(message, back.data()));
}

INSTANTIATE_TEST_SUITE_P(Used, NoiseSession, testing::Values(&kNNpsk0, &kPskOnly, &kIKpsk1),
                         [](const auto& chosen) -> std::string {
                           return chosen.param == &kNNpsk0 ? "NNpsk0" : chosen.param == &kIKpsk1 ? "IKpsk1" : "pskOnly";
                         });

// Such a public key gives the same product to everyone.
TEST(NoiseKeys, OfSmallOrderAreNotAccepted) {
  const Key psk{};
  Session initiator(kNNpsk0, true, {}, psk), responder(kNNpsk0, false, {}, psk);
  initiator.setEphemeral([] {
    KeyPair pair;
    pair.open[0] = std::byte{1};  // of order four
    return pair;
  }());
  Bytes message(64);
  message.resize(initiator.overhead());
  ASSERT_TRUE(initiator.write({}, message.data()));
  ASSERT_TRUE(responder.read(message, nullptr));
  Bytes answer(responder.overhead());
  EXPECT_FALSE(responder.write({}, answer.data()));
}

}  // namespace
}  // namespace tutti::noise::test

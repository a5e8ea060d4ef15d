// Records that are sealed and opened, and what happens to those that somebody touched.
#include "net/cipher.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"

namespace tutti {
namespace {

struct Record {
  std::vector<std::byte> bytes;
  std::array<std::byte, Cipher::kTagBytes> tag{};
};

std::vector<std::byte> pattern(size_t bytes, unsigned seed) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = std::byte((i * 31 + seed) & 255);
  return data;
}

class CipherTest : public testing::TestWithParam<CipherKind> {
 protected:
  void SetUp() override {
    if (GetParam() == CipherKind::kAes256Gcm && !hasAes256Gcm()) GTEST_SKIP() << "this processor has no AES";
    fillRandom(key_.data(), key_.size());
  }
  Cipher make(uint64_t bytesPerKey = Cipher::kBytesPerKey) const { return Cipher(GetParam(), key_, bytesPerKey); }
  static Record seal(Cipher& cipher, const std::vector<std::byte>& clear) {
    Record record{std::vector<std::byte>(clear.size()), {}};
    EXPECT_TRUE(cipher.seal(record.bytes.data(), record.tag.data(), clear.data(), clear.size()));
    return record;
  }
  static bool opens(Cipher& cipher, Record record) {
    return cipher.open(record.bytes.data(), record.bytes.data(), record.bytes.size(), record.tag.data());
  }
  CipherKey key_;
};

TEST_P(CipherTest, OpensWhatItSealedInOrder) {
  Cipher out = make(), in = make();
  for (const size_t bytes : {0u, 1u, 15u, 16u, 17u, 64u, 1000u, 65536u, 65537u}) {
    const auto clear = pattern(bytes, 7);
    const Record record = seal(out, clear);
    if (bytes >= 15) {
      EXPECT_NE(record.bytes, clear);
    }
    std::vector<std::byte> back(bytes);
    ASSERT_TRUE(in.open(back.data(), record.bytes.data(), bytes, record.tag.data()));
    EXPECT_EQ(back, clear);
  }
}

TEST_P(CipherTest, SealsAndOpensInPlace) {
  Cipher out = make(), in = make();
  const auto clear = pattern(5000, 3);
  Record record{clear, {}};
  ASSERT_TRUE(out.seal(record.bytes.data(), record.tag.data(), record.bytes.data(), record.bytes.size()));
  EXPECT_NE(record.bytes, clear);
  ASSERT_TRUE(in.open(record.bytes.data(), record.bytes.data(), record.bytes.size(), record.tag.data()));
  EXPECT_EQ(record.bytes, clear);
}

TEST_P(CipherTest, NeverSealsTwoRecordsAlike) {
  Cipher out = make();
  const auto clear = pattern(64, 1);
  const Record first = seal(out, clear), second = seal(out, clear);
  EXPECT_NE(first.bytes, second.bytes);
  EXPECT_NE(first.tag, second.tag);
}

// Its key has gone to another one: nothing passes in the clear, nor under a key that anybody knows.
TEST_P(CipherTest, WithoutAKeySealsAndOpensNothing) {
  Cipher out = make(), in = make();
  const Cipher sealing = std::move(out), opening = std::move(in);
  const auto clear = pattern(64, 5);
  Record record{std::vector<std::byte>(clear.size()), {}};
  EXPECT_FALSE(out.seal(record.bytes.data(), record.tag.data(), clear.data(), clear.size()));
  EXPECT_EQ(record.bytes, std::vector<std::byte>(clear.size()));
  EXPECT_FALSE(opens(in, record));
}

TEST_P(CipherTest, RefusesAChangeOfAnyByte) {
  Cipher out = make();
  const Record right = seal(out, pattern(100, 9));
  for (size_t at = 0; at < right.bytes.size() + right.tag.size(); ++at) {
    Record wrong = right;
    std::byte& byte = at < wrong.bytes.size() ? wrong.bytes[at] : wrong.tag[at - wrong.bytes.size()];
    byte ^= std::byte(1u << at % 8);
    Cipher in = make();
    EXPECT_FALSE(opens(in, wrong)) << "byte " << at;
    EXPECT_FALSE(opens(in, right)) << "after a forged record nothing opens";
  }
  Cipher in = make();
  EXPECT_TRUE(opens(in, right));
}

TEST_P(CipherTest, RefusesRepeatedDroppedAndReorderedRecords) {
  Cipher out = make();
  const Record first = seal(out, pattern(40, 1)), second = seal(out, pattern(40, 2)), third = seal(out, pattern(40, 3));
  Cipher repeated = make(), dropped = make(), reordered = make(), right = make();
  EXPECT_TRUE(opens(repeated, first));
  EXPECT_FALSE(opens(repeated, first));
  EXPECT_TRUE(opens(dropped, first));
  EXPECT_FALSE(opens(dropped, third));
  EXPECT_FALSE(opens(reordered, second));
  EXPECT_TRUE(opens(right, first) && opens(right, second) && opens(right, third));
}

TEST_P(CipherTest, RefusesShorterLongerAndForeignRecords) {
  Cipher out = make();
  const Record right = seal(out, pattern(40, 1));
  Record shorter = right, longer = right;
  shorter.bytes.pop_back();
  longer.bytes.push_back(std::byte{0});
  Cipher a = make(), b = make();
  EXPECT_FALSE(opens(a, shorter));
  EXPECT_FALSE(opens(b, longer));
  CipherKey other = key_;
  other[31] ^= std::byte{1};
  Cipher foreign(GetParam(), other);
  EXPECT_FALSE(opens(foreign, right));
}

TEST_P(CipherTest, ChangesItsKeyOnBothSidesAtOnce) {
  Cipher out = make(1000), in = make(1000), never = make();
  bool differs = false;
  for (unsigned i = 0; i < 100; ++i) {
    const Record record = seal(out, pattern(i * 7, i));
    ASSERT_TRUE(opens(in, record)) << i;
    differs = differs || !opens(never, record);
  }
  EXPECT_TRUE(differs) << "the key was never changed";
}

std::string kindName(const testing::TestParamInfo<CipherKind>& chosen) {
  return chosen.param == CipherKind::kAes256Gcm ? "aes" : "chacha";
}
INSTANTIATE_TEST_SUITE_P(Both, CipherTest, testing::Values(CipherKind::kAes256Gcm, CipherKind::kXChaCha20Poly1305),
                         kindName);

}  // namespace
}  // namespace tutti

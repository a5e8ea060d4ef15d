#include "job/secret.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "control_ranks.h"
#include "launch/rendezvous.h"

namespace tutti::control::test {
namespace {

TEST(Secrets, AreTheSameForOneTextAtOnePlace) {
  const Secret first = secretFromText("a secret", "n1 29500");
  EXPECT_NE(secretFromText("another one", "n1 29500"), first);
  EXPECT_NE(secretFromText("a secret", "n1 29501"), first) << "work on one job would do for another";
  EXPECT_EQ(secretFromText("a secret", "n1 29500"), first);
  std::vector<Secret> made(4);
  inThreads(4, [&](int i) { made[size_t(i)] = secretFromText("a secret", i % 2 == 0 ? "n1 29500" : "n2"); });
  EXPECT_EQ(made[0], first);
  EXPECT_EQ(made[2], first);
  EXPECT_EQ(made[1], made[3]);
}

// So much each guess costs.
TEST(Secrets, AreMadeByArgon2id) {
  std::array<unsigned char, crypto_pwhash_SALTBYTES> salt;
  const std::string bound = "tutti secret of n1 29500";
  hashInto(salt.data(), salt.size(), bound.data(), bound.size());
  Secret expected;
  ASSERT_EQ(crypto_pwhash(reinterpret_cast<unsigned char*>(expected.data()), expected.size(), "a secret", 8,
                          salt.data(), 3, size_t{16} << 20, crypto_pwhash_ALG_ARGON2ID13),
            0);
  EXPECT_EQ(secretFromText("a secret", "n1 29500"), expected);
}

LaunchInfo secretly(const std::string& secret) {
  LaunchInfo launch;
  launch.rank = 1;  // opens no root
  launch.size = 2;
  launch.oneHost = true;
  launch.jobKey = "secretly";
  launch.secret = secret;
  return launch;
}

// The names of sockets are there for every user to see: one that were made of the secret could be guessed against.
TEST(Secrets, AreNoPartOfNames) {
  const UniqueId one = meetingPlace(secretly("one"), {}, soon()), other = meetingPlace(secretly("other"), {}, soon());
  EXPECT_NE(one.secret, other.secret);
  EXPECT_EQ(one.job, other.job);
}

TEST(Secrets, OfRandomDigitsAreEnough) {
  for (const char* text : {"9f86d081884c7d659a2feaa0c55ad015", "XohImNooBHFR0OVvjcYpJ3NgPQ1qq73WKhHvch0VQtg=",
                           "uSfuL1aPq8mF3vYt0gK2Zw==", "408251763920586417703951826495308172640395"})
    EXPECT_GE(strengthOf(text), kEnoughBits) << text;
  for (int i = 0; i < 100; ++i) {  // as the warning says to make one
    std::array<unsigned char, 32> drawn;
    hashInto(drawn.data(), drawn.size(), &i, sizeof i);  // the same in every run
    std::array<char, sodium_base64_ENCODED_LEN(32, sodium_base64_VARIANT_ORIGINAL)> text;
    sodium_bin2base64(text.data(), text.size(), drawn.data(), drawn.size(), sodium_base64_VARIANT_ORIGINAL);
    EXPECT_GE(strengthOf(text.data()), kEnoughBits) << text.data();
  }
}

TEST(Secrets, OfWordsAreNot) {
  for (const char* text : {"", "a", "a secret", "correct horse battery staple", "hunter2", "0123456789",
                           "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef", "00000000000000000000000000000000000000000000",
                           "0123456789abcdef0123456789abcdef", "aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3",
                           "thisisthelongestpasswordthatanybodycanthinkof", "Tr0ub4dor&3"})
    EXPECT_LT(strengthOf(text), kEnoughBits) << text;
}

}  // namespace
}  // namespace tutti::control::test

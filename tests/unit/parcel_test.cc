// Secrets that pass through the hands of others.
#include "job/parcel.h"

#include <gtest/gtest.h>

#include "control_ranks.h"

namespace tutti::control::test {
namespace {

class Parcel : public testing::Test {
 protected:
  Parcel() { secret_.fill(std::byte{7}); }
  static bool opens(const noise::KeyPair& from, const noise::KeyPair& to, uint64_t job, const Bytes& parcel) {
    return thrownBy([&] { openFrom(from.open, to, job, parcel); }).text.empty();
  }
  const noise::KeyPair leader_ = noise::drawKeyPair(), member_ = noise::drawKeyPair(), other_ = noise::drawKeyPair();
  Secret secret_;
};

TEST_F(Parcel, IsOpenedByTheOneThatItIsFor) {
  const Bytes parcel = sealFor(member_.open, leader_, 5, secret_);
  EXPECT_EQ(openFrom(leader_.open, member_, 5, parcel), secret_);
  EXPECT_EQ(openFrom(leader_.open, leader_, 5, sealFor(leader_.open, leader_, 5, secret_)), secret_);
}

TEST_F(Parcel, IsNotOpenedByAnotherNorFromAnotherNorForAnotherJob) {
  const Bytes parcel = sealFor(member_.open, leader_, 5, secret_);
  EXPECT_FALSE(opens(leader_, other_, 5, parcel));
  EXPECT_FALSE(opens(other_, member_, 5, parcel));
  EXPECT_FALSE(opens(leader_, member_, 6, parcel));
  EXPECT_FALSE(opens(leader_, member_, 5, {}));
  for (size_t at = 0; at < parcel.size(); ++at) {
    Bytes bent = parcel;
    bent[at] ^= std::byte{1};
    EXPECT_FALSE(opens(leader_, member_, 5, bent)) << at;
  }
}

// What is told of a child's root is told to all, and admits its members only.
TEST(ChildId, IsReadByMembersOnly) {
  const auto planes = joinAll(3);
  const Bytes told = planes[1]->openChildRoot({}, soon(), std::vector<int>{1, 2}).told;
  const UniqueId own = planes[1]->childId(told, 1, 0);
  EXPECT_EQ(planes[2]->childId(told, 1, 1).secret, own.secret);
  for (const size_t place : {0u, 1u, 2u})
    EXPECT_FALSE(thrownBy([&] { planes[0]->childId(told, 1, place); }).text.empty()) << place;
  EXPECT_FALSE(thrownBy([&] { planes[2]->childId(told, 0, 1); }).text.empty()) << "in another's name";
  inThreads(2, [&](int r) { joinPlane(requestFor(planes[size_t(r) + 1]->childId(told, 1, size_t(r)), r, 2)); });
}

}  // namespace
}  // namespace tutti::control::test

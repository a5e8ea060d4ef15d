// The one home of a failure: what this rank met first, and what all ranks have been told.
#include "team/team.h"

#include <gtest/gtest.h>

#include "fuzz/hearsay.h"
#include "topology/peer_info.h"

namespace tutti::comm {
namespace {

// Keeps what it is told, as a control plane does: the first failure counts.
class Telling : public fuzz::Hearsay {
 public:
  Telling() : Hearsay(7, 2) {}
  std::span<const std::byte> info(int) const override { return info_; }
  const std::atomic<bool>& failed() const noexcept override { return failed_; }
  std::optional<control::Failure> failure() const override { return first_; }
  void fail(const control::Failure& failure) noexcept override {
    ++told;
    if (!first_) first_ = failure;
    failed_ = true;
  }
  int told = 0;

 private:
  Bytes info_ = topology::encode(topology::describeSelf());
  std::atomic<bool> failed_{false};
  std::optional<control::Failure> first_;
};

struct ATeam : ::testing::Test {
  std::unique_ptr<Telling> made = std::make_unique<Telling>();
  Telling& plane = *made;
  std::vector<std::string> heard;
  Team team{std::move(made), std::make_shared<Recorder>(), Config{}, [this](const Error& why) {
              heard.push_back(why.what());
              throw std::bad_alloc();
            }};
};

TEST_F(ATeam, KeepsTheFirstFailureInItsOwnWordsAndTellsTheOthersWhoGaveUp) {
  EXPECT_FALSE(team.broken());
  team.fail(Error(ErrorCode::kSystem, "no memory"));
  team.fail(Error(ErrorCode::kSystem, "worse"));
  EXPECT_TRUE(team.broken());
  EXPECT_STREQ(team.failure("a call").what(), "no memory");
  EXPECT_EQ(plane.failure()->text, team.rankName(0) + " gave up: no memory");
  EXPECT_EQ(plane.told, 1);
  EXPECT_EQ(heard, std::vector<std::string>{"no memory"}) << "what it sets off hears of it once, and may fail";
}

TEST_F(ATeam, SaysOfAFailureThatItWasToldOfWhatWasGoingOn) {
  plane.fail({1, control::Stop::kDeath, ErrorCode::kRemote, "rank 1 left"});
  EXPECT_TRUE(team.broken());
  EXPECT_STREQ(team.failure("a call").what(), "rank 1 left, during a call");
  EXPECT_FALSE(team.endedWithProcess());
  team.fail(team.failure("a call"));
  EXPECT_STREQ(team.failure("another").what(), "rank 1 left, during a call") << "the first call that met it";
  EXPECT_EQ(plane.told, 1) << "all know";
}

// It also ends what goes on after a failure.
TEST_F(ATeam, TellsOfAnAbortInAnyCase) {
  team.fail(Error(ErrorCode::kTimeout, "late"));
  EXPECT_EQ(plane.failure()->text, "late") << "what is everybody's is told as it is";
  team.stop(control::Stop::kAbort, Error(ErrorCode::kRemote, "aborted"));
  EXPECT_EQ(plane.told, 2);
}

TEST_F(ATeam, GivesItsRecordToWhoeverAsksFirst) {
  EXPECT_TRUE(team.claimDump());
  EXPECT_FALSE(team.claimDump());
  team.giveUpDump();
  EXPECT_FALSE(team.hasDump());
  EXPECT_TRUE(team.claimDump());
}

}  // namespace
}  // namespace tutti::comm
